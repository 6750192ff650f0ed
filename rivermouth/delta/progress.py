"""What a table's log says about a sink's progress, and what follows from it. No I/O in here.

A sink's progress is a handful of Delta `txn` actions, each an app id with a whole number:

    rivermouth/<pipeline>/<sink>/generation               the present owner
    rivermouth/<pipeline>/<sink>/epoch                    the last committed epoch
    rivermouth/<pipeline>/<sink>/rejects                  the last epoch that had dead letters
    rivermouth/<pipeline>/<sink>/rejects_landed           the last epoch whose dead letters are known to be in
    rivermouth/<pipeline>/<sink>/offset/<topic>/<number>  the next offset to read
    rivermouth/<pipeline>/<sink>/topic/<topic>            a hash that tells a topic from its successor
    rivermouth/<pipeline>/<sink>/table                    a hash of the id that the table had

The same again under `.../<sink>/replay/` and `.../<sink>/dead_letters_replay/`, for what an operator sends
through the sink a second time; and, in the dead-letter table, `.../dead_letters/<id of the main
table>`, the last epoch whose dead letters it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

from rivermouth.errors import Fenced, ProgressLost
from rivermouth.records import Offsets, Partition


@dataclass(frozen=True)
class AppIds:
    """The app ids of one sink, or of a part of it that has progress of its own."""

    pipeline: str
    sink: str
    part: str = ""

    @property
    def prefix(self) -> str:
        return f"rivermouth/{self.pipeline}/{self.sink}/" + (f"{self.part}/" if self.part else "")

    @property
    def generation(self) -> str:
        return self.prefix + "generation"

    @property
    def epoch(self) -> str:
        return self.prefix + "epoch"

    @property
    def rejects(self) -> str:
        return self.prefix + "rejects"

    @property
    def rejects_landed(self) -> str:
        return self.prefix + "rejects_landed"

    @property
    def table(self) -> str:
        return self.prefix + "table"

    def dead_letters(self, table: str) -> str:
        """Of the main table's id: one that is created again counts its epochs from 1."""
        return f"{self.prefix}dead_letters/{table}"

    def offset(self, partition: Partition) -> str:
        return self.of("offset", partition)

    def of(self, kind: str, partition: Partition) -> str:
        return f"{self.prefix}{kind}/{quote(partition.topic, safe='')}/{partition.number}"

    def topic(self, topic: str) -> str:
        return f"{self.prefix}topic/{quote(topic, safe='')}"


@dataclass(frozen=True)
class Progress:
    """How far a sink has come, as its table remembers it."""

    generation: int = 0
    epoch: int = 0
    rejects: int = 0
    rejects_landed: int = 0
    offsets: Offsets = field(default_factory=dict)
    topics: dict[str, int] = field(default_factory=dict)
    table: int = 0


def parse_offsets(txns: Mapping[str, int], ids: AppIds, kind: str = "offset") -> Offsets:
    """Read the numbers that a sink keeps for each partition."""
    prefix = f"{ids.prefix}{kind}/"
    found: Offsets = {}
    for app_id, version in txns.items():
        if app_id.startswith(prefix):
            topic, _, number = app_id[len(prefix) :].rpartition("/")
            found[Partition(unquote(topic), int(number))] = version
    return found


def parse(txns: Mapping[str, int], ids: AppIds) -> Progress:
    """Read a sink's progress out of a table's `txn` actions."""
    prefix = f"{ids.prefix}topic/"
    topics = {unquote(app[len(prefix) :]): version for app, version in txns.items() if app.startswith(prefix)}
    return Progress(
        generation=txns.get(ids.generation, 0),
        epoch=txns.get(ids.epoch, 0),
        rejects=txns.get(ids.rejects, 0),
        rejects_landed=txns.get(ids.rejects_landed, 0),
        offsets=parse_offsets(txns, ids),
        topics=topics,
        table=txns.get(ids.table, 0),
    )


def claim(
    seen: Progress, base: Progress, ids: AppIds, begin: Offsets, topics: Mapping[str, int]
) -> dict[str, int]:
    """The txns of a claim: the next generation, and every partition's offset pinned for good.

    `seen` is what the log says, `base` where this owner starts from: the same, unless the sink is rewound. A
    claim comes after the dead letters of the last owner were finished, and says so.
    """
    txns = {ids.generation: seen.generation + 1, ids.rejects_landed: seen.rejects}
    txns.update(place(seen, ids, base.offsets, base.topics))
    txns.update(pin(base, ids, begin, topics))
    return txns


def pin(progress: Progress, ids: AppIds, begin: Offsets, topics: Mapping[str, int]) -> dict[str, int]:
    """The txns that fix where new partitions begin and which topics these are."""
    moved = {p: o for p, o in begin.items() if progress.offsets.get(p) != o}
    back = [f"{p} from {progress.offsets[p]} to {o}" for p, o in moved.items() if p in progress.offsets]
    if back:
        raise ProgressLost(f"a claim may not move an offset the table already has: {', '.join(back)}")
    txns = {ids.offset(p): o for p, o in moved.items()}
    txns.update({ids.topic(t): i for t, i in topics.items() if not progress.topics.get(t)})
    return txns


def place(progress: Progress, ids: AppIds, offsets: Offsets, topics: Mapping[str, int]) -> dict[str, int]:
    """The txns that set offsets anywhere, also back, and take the topics as they are now."""
    txns = {ids.offset(p): o for p, o in offsets.items() if progress.offsets.get(p) != o}
    txns.update({ids.topic(t): i for t, i in topics.items() if progress.topics.get(t) != i})
    return txns


def advance(
    progress: Progress, ids: AppIds, generation: int, end: Offsets, *, rejects: bool
) -> dict[str, int]:
    """The txns of an epoch: the next epoch number, the own generation again, the offsets that moved.

    An epoch begins after the dead letters of the one before have landed, and says so.
    """
    for partition, offset in end.items():
        if offset < progress.offsets.get(partition, 0):
            raise ProgressLost(
                f"an epoch may not move {partition} back from {progress.offsets[partition]} to {offset}"
            )
    return {**_next_epoch(progress, ids, generation, rejects=rejects), **place(progress, ids, end, {})}


def skip(
    progress: Progress, ids: AppIds, generation: int, offsets: Offsets, topics: Mapping[str, int]
) -> dict[str, int]:
    """The txns of an epoch that reads nothing and goes on elsewhere, because the source has lost records.

    The loss itself is told by a dead letter. `offsets` may lie before the present ones: a topic that was
    created again begins at its beginning.
    """
    return {
        **_next_epoch(progress, ids, generation, rejects=True),
        **place(progress, ids, offsets, topics),
    }


def _next_epoch(progress: Progress, ids: AppIds, generation: int, *, rejects: bool) -> dict[str, int]:
    txns = {ids.epoch: progress.epoch + 1, ids.generation: generation}
    if rejects:
        txns[ids.rejects] = progress.epoch + 1
    if progress.rejects_landed != progress.rejects:
        txns[ids.rejects_landed] = progress.rejects
    return txns


def ensure_owner(seen: Progress, mine: int, sink: str, owner: Callable[[], str | None]) -> None:
    """Stop a sink whose table has been claimed by another instance; `owner` finds out by which."""
    if seen.generation != mine:
        raise Fenced(
            f"sink {sink!r} was taken over by {owner() or 'another instance'} "
            f"(generation {seen.generation}, mine was {mine})"
        )


def partition_named(name: str) -> Partition:
    """The partition that a note of a commit calls by this name."""
    topic, _, number = name.rpartition("/")
    return Partition(topic, int(number))
