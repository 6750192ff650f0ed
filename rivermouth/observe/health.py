"""Whether every sink is well: pure judgements on the state, as the health pages give them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rivermouth.observe.figures import duration, plural

if TYPE_CHECKING:
    from rivermouth.observe.state import SinkStatus, State

Overall = Literal["ok", "starting", "degraded", "down"]


def problem(sink: SinkStatus) -> str | None:
    """Why a sink is not doing its work, or None when it is."""
    if sink.phase in ("retrying", "failed") and sink.last_error:
        return f"{sink.phase}: {sink.last_error.code}: {sink.last_error.message}"
    if sink.phase != "running":
        return sink.phase
    waited = 0.0 if sink.waiting_since is None else sink.now - sink.waiting_since
    if sink.lag and waited > sink.patience:
        return f"stuck: {plural(sink.lag, 'record')} in wait and no commit for {duration(waited)}"
    silent = sink.now - sink.heard
    if silent > sink.patience:
        return f"stuck: no sign of life for {duration(silent)}"
    return None


def ready(state: State) -> tuple[bool, dict[str, Any]]:
    """Whether every sink runs and none is stuck, with the names and problems of those that do not."""
    problems = {sink.name: why for sink in state.sinks() if (why := problem(sink))}
    return not problems, {"ready": not problems, "pipeline": state.pipeline, "problems": problems}


def health(state: State) -> dict[str, Any]:
    """Every sink in figures, and one word for the whole pipeline."""
    sinks = state.sinks()
    return {
        "status": overall(sinks),
        "pipeline": state.pipeline,
        "uptime_seconds": round(state.uptime, 3),
        "sinks": {sink.name: _sink(sink) for sink in sinks},
    }


def overall(sinks: list[SinkStatus]) -> Overall:
    """One word: ok, starting (nothing worse), degraded (some sinks are well), down (none is)."""
    bad = [sink for sink in sinks if problem(sink)]
    if not bad:
        return "ok"
    if all(sink.phase == "starting" for sink in bad):
        return "starting"
    return "down" if len(bad) == len(sinks) else "degraded"


def _sink(sink: SinkStatus) -> dict[str, Any]:
    error = sink.last_error
    return {
        "state": sink.phase,
        "problem": problem(sink),
        "epoch": sink.epoch,
        "generation": sink.generation,
        "table_version": sink.version,
        "lag_records": sink.lag,
        "rows_per_second": round(sink.rows_per_second, 3),
        "records_read": sink.read,
        "records_written": sink.written,
        "records_filtered": sink.filtered,
        "dead_letters": {reason: count for reason, count in sink.dead.items() if count},
        "records_dropped": {reason: count for reason, count in sink.dropped.items() if count},
        "gaps": sink.gaps,
        "offsets_lost": sink.lost,
        "files_created": sink.files,
        "bytes_written": sink.bytes,
        "commits_success": sink.commits,
        "commits_failed": sink.commits_failed,
        "last_commit": sink.last_commit_at.isoformat() if sink.last_commit_at else None,
        "last_epoch_seconds": round(sink.last_epoch_seconds, 3),
        "last_error": (
            {"code": error.code, "message": error.message, "time": error.at.isoformat()} if error else None
        ),
    }
