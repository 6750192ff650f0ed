"""What an operator wants to know of a sink: what its table says, what its source says, and what lies between.

This only reads. It claims nothing, creates nothing and writes nothing, so a running owner does not notice.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Literal

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from rivermouth.config.model import PipelineConfig
from rivermouth.delta import progress
from rivermouth.delta.log import Commit, LogView
from rivermouth.delta.progress import AppIds, Progress
from rivermouth.delta.storage import open_filesystem, parse_uri
from rivermouth.errors import DeltaWriterFailed, RivermouthError, in_a_line
from rivermouth.pipeline import decide
from rivermouth.pipeline.run import open_source
from rivermouth.records import Bounds, Offsets, Partition
from rivermouth.spark.engine import Engine, JvmOnly

# A source that does not answer takes its time to say so; the others need not wait for it.
_AT_ONCE = 8

Condition = Literal["", "new", "gone", "expired", "recreated", "truncated"]


@dataclass(frozen=True)
class Standing:
    """Where a sink stands in one partition. None: not known, or without a meaning here."""

    partition: Partition
    offset: int | None = None  # the next one to read
    bounds: Bounds | None = None
    lag: int | None = None  # records that wait
    condition: Condition = ""  # what is out of the ordinary


@dataclass(frozen=True)
class TableSide:
    """What the log of a sink's table says of it."""

    version: int
    progress: Progress
    last: Commit | None = None  # the latest of an owner, if the log still has it
    last_epoch: Commit | None = None
    restored: int | None = None  # the version of a RESTORE that no owner has dealt with
    owed: bool = False  # whether dead letters of the last epoch are not in their table yet
    dead_letters: int | None = None  # rows of the dead-letter table; None: there is none

    @property
    def owner(self) -> str | None:
        """The instance that holds the sink, as its latest commit names it."""
        return self.last.note.get("instance") if self.last else None


@dataclass(frozen=True)
class SourceSide:
    """What a sink's source says; where it cannot be asked, why."""

    standings: list[Standing] = field(default_factory=list)
    error: str | None = None
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class SinkStatus:
    """One sink, from both sides; a table of None is one that is not there yet."""

    name: str
    table_uri: str
    dead_letter_uri: str
    source_name: str
    table: TableSide | None
    table_error: str | None
    source: SourceSide

    @property
    def started(self) -> bool:
        """Whether the sink was ever claimed."""
        return self.table is not None and self.table.progress.generation > 0

    @property
    def lag(self) -> int | None:
        """Records that wait in all partitions; None where no partition tells."""
        known = [standing.lag for standing in self.source.standings if standing.lag is not None]
        return sum(known) if known else None


def look(config: PipelineConfig, names: Iterable[str]) -> list[SinkStatus]:
    """The sinks of these names as they are now."""
    with _SharedJvm() as engine, ThreadPoolExecutor(_AT_ONCE) as threads:
        return list(threads.map(lambda name: _look_at(config, name, engine), names))


def compare(
    known: Progress,
    bounds: Mapping[Partition, Bounds],
    identities: Mapping[str, int],
    waiting: Callable[[Offsets, Offsets], int],
) -> list[Standing]:
    """Put the offsets of a table beside the bounds of its source."""
    lost = {loss.partition: loss.kind for loss in decide.losses(known, known.offsets, bounds, identities)}
    topics = {partition.topic for partition in known.offsets}
    found = []
    for partition in sorted({*known.offsets, *bounds}):
        offset, bound = known.offsets.get(partition), bounds.get(partition)
        condition: Condition = "new" if offset is None else lost.get(partition, "")
        # A new partition of a known topic begins at its beginning; where a new topic does, a start decides.
        begin = bound.earliest if offset is None and bound and partition.topic in topics else offset
        lag = None
        if bound is not None and begin is not None and condition in ("", "new", "expired"):
            lag = waiting({partition: begin}, {partition: bound.head})
        found.append(Standing(partition, offset, bound, lag, condition))
    return found


def made_at(commit: Commit) -> datetime | None:
    """When a commit was made, by its own word."""
    stamp = commit.info.get("timestamp")
    return datetime.fromtimestamp(stamp / 1000, timezone.utc) if isinstance(stamp, int) else None


def _look_at(config: PipelineConfig, name: str, engine: Engine) -> SinkStatus:
    sink = config.sinks[name]
    uri, dead_letter_uri = parse_uri(sink.config.table_uri), parse_uri(sink.config.dead_letter_uri)
    table, error = None, None
    try:
        table = read_table(uri, dead_letter_uri, AppIds(config.pipeline, name))
    except RivermouthError as caught:
        error = str(caught)
    known = table.progress if table else Progress()
    source = _ask(config, name, known, engine)
    return SinkStatus(name, uri, dead_letter_uri, sink.source, table, error, source)


def read_table(uri: str, dead_letter_uri: str, ids: AppIds) -> TableSide | None:
    """What a table's log says of a sink; None if there is no table."""
    log = _open_log(uri)
    if log is None:
        return None
    seen = progress.parse(log.txns, ids)
    last, last_epoch, restored = _latest(log, ids, seen)
    owed = seen.rejects != seen.rejects_landed
    if owed:  # or so it seems: that they are in is told by the next commit, and by their own table
        note = last_epoch.note if last_epoch else {}
        letters = None
        with suppress(RivermouthError):
            letters = _open_log(note.get("dead_letter_uri", dead_letter_uri))
        app_id = ids.dead_letters(str(DeltaTable(uri).metadata().id))
        owed = letters is None or letters.txns.get(app_id, 0) < seen.rejects
    rows = None
    with suppress(RivermouthError):  # a start tells what is wrong with it; the main table is another matter
        rows = _count(dead_letter_uri)
    return TableSide(log.version, seen, last, last_epoch, restored, owed, rows)


def _latest(log: LogView, ids: AppIds, seen: Progress) -> tuple[Commit | None, Commit | None, int | None]:
    """The latest commit of an owner, that of its last epoch, and a RESTORE that came after it."""
    last, restored = None, None
    if seen.generation:
        for made in log.backwards():
            if ids.generation in made.txns:
                last = last or made
                if ids.epoch in made.txns:
                    return last, made, restored
                if not seen.epoch:
                    break
            elif made.restores and last is None and restored is None:
                restored = made.version
    return last, None, restored


def _open_log(uri: str) -> LogView | None:
    filesystem, root = open_filesystem(uri)
    delta = _open(uri)
    if delta is None:
        return None
    log = LogView(filesystem, f"{root}/_delta_log")
    log.advance(delta.version())
    return log


def _count(uri: str) -> int | None:
    delta = _open(uri)
    return None if delta is None else delta.count()


def _open(uri: str) -> DeltaTable | None:
    try:
        return DeltaTable(uri)
    except TableNotFoundError:
        return None
    except (DeltaError, OSError) as error:
        raise DeltaWriterFailed(
            f"the table {uri} cannot be opened: {in_a_line(error)}", hint="check that its folder can be read"
        ) from error


def _ask(config: PipelineConfig, name: str, known: Progress, engine: Engine) -> SourceSide:
    """Ask the source; whatever keeps it from answering is told instead, beside what the table says."""
    warnings: list[str] = []
    try:
        source = open_source(config, name, engine, lambda code, text: warnings.append(f"{code}: {text}"))
        try:
            bounds = source.bounds(known.offsets)
            standings = compare(known, bounds, source.identities(), source.waiting)
        finally:
            source.close()
    except Exception as error:  # noqa: BLE001 - the table's side is worth showing in any case
        told = str(error) if isinstance(error, RivermouthError) else f"{type(error).__name__}: {error}"
        alone = [Standing(partition, offset) for partition, offset in sorted(known.offsets.items())]
        return SourceSide(alone, told, warnings)
    return SourceSide(standings, None, warnings)


class _SharedJvm(JvmOnly):
    """A JVM that several sinks ask for at the same time, and that is started once."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()

    @property
    def jvm(self) -> Any:
        with self._lock:
            return super().jvm
