"""When an epoch starts and what range it takes. Pure: numbers in, a decision out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rivermouth.errors import DataLoss
from rivermouth.records import Bounds, Offsets, Partition


@dataclass(frozen=True)
class Limits:
    """When to start an epoch, and how much it may take; `most=None` takes all that waits."""

    batch_size: int
    flush_seconds: float
    most: int | None


def ends(position: Offsets, bounds: Mapping[Partition, Bounds]) -> Offsets:
    """The head of every partition in `position`; what cannot be read on from there is an error."""
    heads: Offsets = {}
    for partition, offset in position.items():
        bound = bounds.get(partition)
        if bound is None:
            raise DataLoss(
                f"{partition} is gone from the source; the table has read it up to offset {offset}",
                hint="bring the topic back, or leave it out of the config if it was deleted on purpose",
            )
        if offset < bound.earliest:
            raise DataLoss(
                f"{partition}: offsets {offset} to {bound.earliest - 1} expired before they were read",
                hint="keep records longer in the source, or read it into a new table",
            )
        if offset > bound.head:
            raise DataLoss(
                f"{partition}: the table has read up to offset {offset}, but the source ends at {bound.head}",
                hint="the topic was truncated or created again; read it under a new pipeline name",
            )
        heads[partition] = bound.head
    return heads


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
