"""Sets a sink's offsets by hand: a commit that takes a new generation, as a start does.

So the next start goes on from there, and an owner that runs stops at its next commit instead of undoing it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from rivermouth.delta import progress
from rivermouth.delta.progress import Progress
from rivermouth.errors import ProgressLost, TableRestored
from rivermouth.pipeline.rewind import is_replaced, take_back_marks
from rivermouth.pipeline.sink import Sink
from rivermouth.records import Offsets, Partition
from rivermouth.sources.base import Place


@dataclass(frozen=True)
class Move:
    """What a reset does to one partition."""

    partition: Partition
    before: int | None  # None: the table does not know it yet
    after: int

    def __str__(self) -> str:
        if self.before is None or self.before == self.after:
            return f"{self.partition}: {'starts' if self.before is None else 'stays'} at {self.after}"
        count = abs(self.after - self.before)
        if self.after > self.before:
            return f"{self.partition}: {self.before} -> {self.after}, skips {count}"
        return f"{self.partition}: {self.before} -> {self.after}, reads {count} again"


def moves(sink: Sink, place: Place) -> list[Move]:
    """What a reset to a place would do, now.

    The partitions that are not named stay, unless their topic was created again: then their offsets mean
    nothing.
    """
    known = progress.parse(sink.table.txns, sink.ids)
    wanted = dict(sink.source.locate(place, known.offsets))
    bounds = sink.source.bounds(known.offsets)
    identities = sink.source.identities(now=True)
    recreated = {t for t, i in identities.items() if (known.topics.get(t) or i) != i}
    for partition in known.offsets:
        if partition.topic in recreated and partition not in wanted:
            wanted[partition] = bounds[partition].earliest if partition in bounds else 0
    _ensure_whole(sink, known, [p for p in bounds if p in known.offsets and p not in wanted])
    return [Move(p, known.offsets.get(p), o) for p, o in sorted(wanted.items())]


def _ensure_whole(sink: Sink, known: Progress, left: list[Partition]) -> None:
    """A reset settles a RESTORE, so it must not leave partitions where they were by oversight."""
    if left and (sink.hold.restored(known) is not None or is_replaced(sink.table, known)):
        raise TableRestored(
            "the table was set back, so that every partition needs a place, also "
            + ", ".join(map(str, left[:5])),
            hint="name them all, or set on_restore: rewind or continue and start the pipeline",
        )


def reset(sink: Sink, wanted: list[Move]) -> None:
    """Do it; the partitions that are not named stay where they are."""
    offsets: Offsets = {move.partition: move.after for move in wanted}
    named = {partition.topic for partition in offsets}
    topics = {t: i for t, i in sink.source.identities(now=True).items() if t in named}

    def place(seen: Progress) -> dict[str, int]:
        with suppress(ProgressLost):  # the log no longer tells of them
            take_back_marks(sink.table, sink.ids, seen, sink.dead_letter_uri)
        return progress.place(seen, sink.ids, offsets, topics)

    told = {str(move.partition): [move.before, move.after] for move in wanted}
    sink.take_over("reset", place, offsets=told)
