"""When an epoch starts and what range it takes. Pure: numbers in, a decision out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rivermouth.records import Bounds, Offsets, Partition


@dataclass(frozen=True)
class Limits:
    """When to start an epoch, and how much it may take; `most=None` takes all that waits."""

    batch_size: int
    flush_seconds: float
    most: int | None


def ends(position: Offsets, bounds: Mapping[Partition, Bounds]) -> Offsets:
    """The head of every partition in `position`."""
    return {partition: bounds[partition].head for partition in position}


def due(waiting: int, waited: float, limits: Limits) -> bool:
    """Whether an epoch should start: enough records wait, or the oldest has waited long enough."""
    return waiting > 0 and (waiting >= limits.batch_size or waited >= limits.flush_seconds)


def share(position: Offsets, heads: Offsets, most: int | None) -> Offsets:
    """The end of the next epoch: all that waits, or `most` records shared fairly among partitions.

    Each partition may take an equal part; what one leaves over goes to the others.
    """
    backlog = {p: heads[p] - position[p] for p in heads}
    if most is None or sum(backlog.values()) <= most:
        return dict(heads)
    taken: Offsets = {}
    left = most
    by_backlog = sorted(backlog, key=lambda p: (backlog[p], p))
    for index, partition in enumerate(by_backlog):
        part = -(
            -left // (len(by_backlog) - index)
        )  # rounded up, so that the last gets no less than the rest
        taken[partition] = min(backlog[partition], part)
        left -= taken[partition]
    return {p: position[p] + taken[p] for p in heads}
