"""Reads a range of a sink's source again into its table: a repair, after bad rows were deleted.

A replay has progress of its own in the log, beside the sink's: a range, and how far it has come. So it
is exactly once itself, can be broken off and taken up again, and does not disturb the owner of the sink.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rivermouth.delta import progress
from rivermouth.delta.commit import Change
from rivermouth.delta.progress import AppIds, Progress
from rivermouth.errors import (
    ConfigError,
    DataLoss,
    ProgressLost,
    ReplayPending,
    SourceChanged,
    SourceInvalid,
)
from rivermouth.pipeline import decide, plan
from rivermouth.pipeline.batches import FIRST_EPOCH
from rivermouth.pipeline.rewind import ensure_dealt_with
from rivermouth.pipeline.sink import Sink
from rivermouth.records import Offsets
from rivermouth.sources.base import Place

PART = "replay"


@dataclass(frozen=True)
class Range:
    """The offsets to read again, from `start` to before `end`."""

    start: Offsets
    end: Offsets

    def __str__(self) -> str:
        parts = [f"{p} {self.start[p]} to {self.end[p] - 1}" for p in sorted(self.end)]
        return ", ".join(parts[:5]) + (f" and {len(parts) - 5} more partitions" if len(parts) > 5 else "")


@dataclass(frozen=True)
class Earlier:
    """The last replay of a sink, as its table remembers it."""

    range: Range
    position: Offsets
    owes: bool  # dead letters of its last epoch

    @property
    def reached(self) -> str:
        """How far it has come, for people."""
        return ", ".join(f"{p} {self.position[p]}" for p in sorted(self.range.end)[:5])

    @property
    def finished(self) -> bool:
        return not self.owes and all(self.position[p] >= end for p, end in self.range.end.items())


def find_range(sink: Sink, start: Place, end: Place | None) -> Range:
    """The range between two places, as far as the sink has read; without an `end`, up to there."""
    if sink.overwrite:
        raise ConfigError(
            f"sink {sink.name!r} has write_mode overwrite, where an epoch replaces the table",
            hint="run the pipeline; there is nothing to repair in such a table",
        )
    main = progress.parse(sink.table.txns, AppIds(sink.ids.pipeline, sink.ids.sink))
    begin = sink.source.locate(start, main.offsets)
    stop = sink.source.locate(end, main.offsets) if end is not None else dict(main.offsets)
    try:
        decide.ensure_topics(main, sink.source.identities(now=True))
    except SourceChanged as error:
        raise ProgressLost(
            f"{error.message}, so that the table's offsets mean nothing in it",
            hint="replay from a copy of it",
        ) from None
    if isinstance(end, dict):
        beyond = [f"{p} to {main.offsets.get(p, 0)}" for p, o in stop.items() if o > main.offsets.get(p, 0)]
        if beyond:
            raise SourceInvalid(
                f"a replay may not go further than the sink itself, which has read {', '.join(beyond)}",
                hint="what lies behind is read by the pipeline",
            )
    ends = {p: min(stop[p], main.offsets[p]) for p in begin if p in stop and p in main.offsets}
    wanted = {p: o for p, o in ends.items() if begin[p] < o}
    return Range({p: begin[p] for p in wanted}, wanted)


def earlier(sink: Sink) -> Earlier | None:
    """The last replay of this sink, finished or not."""
    txns = sink.table.txns
    start = progress.parse_offsets(txns, sink.ids, "start")
    end = progress.parse_offsets(txns, sink.ids, "end")
    seen = _progress(sink)
    wanted = [p for p in end if start[p] < end[p]]
    if not wanted:
        return None
    return Earlier(
        Range({p: start[p] for p in wanted}, {p: end[p] for p in wanted}),
        seen.offsets,
        seen.rejects != seen.rejects_landed,
    )


def unfinished(sink: Sink) -> Range:
    """The range of the replay that was broken off."""
    last = earlier(sink)
    if last is None or last.finished:
        raise ReplayPending(f"no replay of sink {sink.name!r} is unfinished", hint="give a range with --from")
    return last.range


def admit(sink: Sink, wanted: Range, *, again: bool = False, abandon: bool = False) -> bool:
    """Whether this goes on with the last replay; raises where that would be undone or done twice."""
    ensure_dealt_with(sink.table, sink.ids)
    main = progress.parse(sink.table.txns, AppIds(sink.ids.pipeline, sink.ids.sink))
    beyond = [str(p) for p, end in wanted.end.items() if end > main.offsets.get(p, 0)]
    if beyond:
        raise ReplayPending(
            f"the range goes further than the sink, whose offsets were set back: {', '.join(beyond[:5])}",
            hint="the pipeline reads these records; give a smaller range and --abandon",
        )
    last = earlier(sink)
    if (
        last is not None
        and not last.finished
        and not abandon
        and sink.hold.restored(_progress(sink)) is not None
    ):
        raise ReplayPending(
            "the table was set back since the last replay was broken off, so that what it landed may be gone",
            hint="--abandon begins anew",
        )
    if last is not None and last.range == wanted:
        if last.finished and not again:
            raise ReplayPending(
                f"this very range was replayed already, and the replay is complete: {wanted}",
                hint="--again reads it once more",
            )
    elif last is not None and not last.finished and not abandon:
        raise ReplayPending(
            f"another replay of this sink is unfinished: {last.range}",
            hint="finish it with --resume, or give it up with --abandon; what it has landed stays",
        )
    return last is not None and last.range == wanted and not last.finished and not abandon


def _progress(sink: Sink) -> Progress:
    return progress.parse(sink.table.txns, sink.ids)


def begin(sink: Sink, wanted: Range, *, again: bool = False, abandon: bool = False) -> None:
    """Claim the replay of a range: a new one, or the one that was broken off."""

    def txns(seen: Progress) -> dict[str, int]:
        if admit(sink, wanted, again=again, abandon=abandon):
            return {}
        old = progress.parse_offsets(sink.table.txns, sink.ids, "end")
        done = {p: o for p, o in seen.offsets.items() if p in old and p not in wanted.end}
        main = progress.parse(sink.table.txns, AppIds(sink.ids.pipeline, sink.ids.sink))
        # Those of the sink itself, which was compared with the source when the range was found.
        topics = {p.topic: main.topics[p.topic] for p in wanted.end if p.topic in main.topics}
        return {
            # A partition of an earlier replay that this one has not is an empty range.
            **{sink.ids.of(kind, p): o for p, o in done.items() for kind in ("start", "end")},
            **{sink.ids.of("start", p): o for p, o in wanted.start.items()},
            **{sink.ids.of("end", p): o for p, o in wanted.end.items()},
            **progress.place(seen, sink.ids, wanted.start, topics),
        }

    sink.take_over("replay", txns, range=str(wanted))
    sink.position = {p: sink.progress.offsets[p] for p in wanted.end}


def run(sink: Sink, wanted: Range, stopping: Callable[[], bool], told: Callable[[Offsets], None]) -> bool:
    """Land the range, epoch by epoch; False if it was stopped before the end."""
    _ensure_there(sink)
    most = sink.source.most(sink.settings.max_batch_size)
    while any(sink.position[p] < end for p, end in wanted.end.items()):
        if stopping():
            return False
        limit = min(most, FIRST_EPOCH) if sink.largest is None else most
        end = plan.share(sink.position, wanted.end, limit)
        sink.run_epoch({p: o for p, o in end.items() if o > sink.position[p]})
        told(sink.position)
    if sink.progress.rejects != sink.progress.rejects_landed:
        # They have landed, and nobody comes after us to say so.
        done = {sink.ids.rejects_landed: sink.progress.rejects, sink.ids.generation: sink.generation}
        sink.hold.commit(Change(done, sink.hold.note("replay finished")))
    return True


def _ensure_there(sink: Sink) -> None:
    bounds = sink.source.bounds(sink.position)
    gone = [
        f"{p}: offset {o}, but it " + (f"begins at {bounds[p].earliest}" if p in bounds else "is gone")
        for p, o in sink.position.items()
        if p not in bounds or o < bounds[p].earliest
    ]
    if gone:
        raise DataLoss(
            f"the source no longer has all of the range: {'; '.join(gone)}", hint="give a range it has"
        )
