"""What to do next, given what the table says, what the source says and what just failed.

Pure: facts in, a decision out. The tests go through it as a table of cases.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from rivermouth.delta.progress import Progress
from rivermouth.errors import DataLoss, ProgressLost, RivermouthError, SourceChanged, TableRestored
from rivermouth.records import Bounds, Offsets, Partition

OnRestore = Literal["fail", "rewind", "continue"]

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
ONCE_ATTEMPTS = 5  # a run that should end does not retry for ever


@dataclass(frozen=True)
class Loss:
    """Records of a partition that the table has not, and the source no longer gives."""

    kind: Literal["expired", "recreated", "truncated", "gone"]
    partition: Partition
    first: int  # the offset the table would have read next
    resume: int | None  # where reading goes on; None: nowhere
    count: int | None  # offsets lost, where that can be known

    def __str__(self) -> str:
        place, first = self.partition, self.first
        if self.kind == "expired":
            last = first + (self.count or 0) - 1
            return f"{place}: offsets {first} to {last} expired before they were read"
        if self.kind == "recreated":
            return (
                f"{place}: the topic was deleted and created again, or the cluster is another one; what the "
                f"old one held from offset {first} on is lost"
            )
        if self.kind == "truncated":
            return (
                f"{place}: the table has read up to offset {first}, but the source ends at {self.resume}; "
                "what was written there since it was cut off is not read"
            )
        return f"{place} is gone from the source; the table has read it up to offset {first}"


def losses(
    known: Progress, position: Offsets, bounds: Mapping[Partition, Bounds], identities: Mapping[str, int]
) -> list[Loss]:
    """What cannot be read on from `position`, in a source with these bounds and topics."""
    found = []
    for partition, offset in sorted(position.items()):
        bound = bounds.get(partition)
        identity = identities.get(partition.topic)
        if identity is not None and (known.topics.get(partition.topic) or identity) != identity:
            resume = bound.earliest if bound else None
            found.append(Loss("recreated", partition, offset, resume, None))
        elif bound is None:
            found.append(Loss("gone", partition, offset, None, None))
        elif offset < bound.earliest:
            found.append(Loss("expired", partition, offset, bound.earliest, bound.earliest - offset))
        elif offset > bound.head:
            found.append(Loss("truncated", partition, offset, bound.head, None))
    return found


def behind(
    found: list[Loss], known: Progress, identities: Mapping[str, int]
) -> tuple[Offsets, dict[str, int]]:
    """Where reading goes on behind losses, and the topics that are no longer the ones the table knows."""
    recreated = {loss.partition.topic for loss in found if loss.kind == "recreated"}
    gone = {loss.partition.topic for loss in found if loss.kind == "gone"}
    # Partitions that a topic created again has not, or not yet, begin at their beginning too; so does a topic
    # that is gone, if there is one of its name again. That it is gone is told once.
    offsets = {p: 0 for p in known.offsets if p.topic in recreated | gone}
    offsets.update({loss.partition: loss.resume for loss in found if loss.resume is not None})
    return offsets, {**{topic: identities[topic] for topic in recreated}, **dict.fromkeys(gone, 0)}


def refuse(found: list[Loss]) -> None:
    """Stop a sink that may not go on over a loss."""
    if not found:
        return
    recreated = next((loss for loss in found if loss.kind == "recreated"), None)
    if recreated is not None:
        raise ProgressLost(
            f"topic {recreated.partition.topic!r} is not the one this table was filled from: it was deleted "
            "and created again, or the cluster is another one, so the table's offsets mean nothing in it",
            hint="with on_data_loss: continue the new topic is read from its beginning into the same table; "
            "a new pipeline name reads it anew; `rivermouth offsets reset` places the sink by hand",
        )
    shown = "; ".join(map(str, found[:5])) + (f"; and {len(found) - 5} more" if len(found) > 5 else "")
    raise DataLoss(shown)


def ensure_topics(known: Progress, identities: Mapping[str, int]) -> None:
    """Refuse to commit what was read from a topic that is not the table's.

    Topics have numbers for life: one that is the same after the records were read was the same before.
    """
    for topic, identity in identities.items():
        if (known.topics.get(topic) or identity) != identity:
            raise SourceChanged(
                f"topic {topic!r} was deleted and created again while its records were read",
                hint="nothing of it is committed; the sink looks again",
            )


def after_restore(version: int | None, replaced: bool, policy: OnRestore) -> bool:
    """Whether to rewind, when rows that the sink had landed may be gone and this was not dealt with.

    The table was restored by its commit `version`, or replaced in place by another one.
    """
    if version is None and not replaced:
        return False
    if policy == "fail":
        what = "replaced by another one in the same log" if replaced else f"set back by version {version}"
        raise TableRestored(
            f"the table was {what}: rows that this sink had landed may be gone, and its offsets are those "
            "from before"
        )
    return policy == "rewind"


def rewound(now: Progress, then: Progress, pinned: Offsets) -> Progress:
    """Progress after a rewind: the offsets and topics of then, and of what came later, where it began.

    Epochs and generations only grow: the dead-letter table and other instances count on it.
    """
    offsets = {p: then.offsets.get(p, pinned.get(p, offset)) for p, offset in now.offsets.items()}
    topics = {t: then.topics.get(t, identity) for t, identity in now.topics.items()}
    return replace(now, offsets=offsets, topics=topics)


@dataclass(frozen=True)
class Verdict:
    """What becomes of a sink after an error."""

    action: Literal["retry", "fail", "stop"]
    pause: float = 0.0


def after_failure(error: RivermouthError, *, failures: int, once: bool, stopping: bool) -> Verdict:
    """Whether a sink starts again after an error, the `failures`th in a row without an epoch in between."""
    if error.retryable and stopping:  # such as an epoch given up at the end of a stop
        return Verdict("stop")
    if not error.retryable or (once and failures >= ONCE_ATTEMPTS):
        return Verdict("fail")
    return Verdict("retry", min(FIRST_PAUSE * 2.0 ** min(failures - 1, 10), LONGEST_PAUSE))
