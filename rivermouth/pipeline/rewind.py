"""A table that was set back with RESTORE, or replaced: whether that was dealt with, and how to go back."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rivermouth.delta import dead_letters, progress
from rivermouth.delta.log import LogView
from rivermouth.delta.progress import AppIds, Progress
from rivermouth.delta.table import Table
from rivermouth.errors import ProgressLost, TableRestored
from rivermouth.pipeline import decide
from rivermouth.records import Offsets, number_for


def undealt_restore(log: LogView, ids: AppIds, seen: Progress) -> int | None:
    """The version of the newest RESTORE since the last commit of these app ids' owners, if there is one."""
    if seen.generation == 0:  # nothing of this sink was there to be taken away
        return None
    for made in log.backwards():
        if made.restores:
            return made.version
        if ids.generation in made.txns:
            return None
    return None


def is_replaced(table: Table, seen: Progress) -> bool:
    """Whether this is another table than the one the log's progress speaks of."""
    return seen.table not in (0, number_for(table.id))


def ensure_dealt_with(table: Table, ids: AppIds) -> None:
    """Refuse a replay into a table that was set back, before the sink itself has dealt with that."""
    main = AppIds(ids.pipeline, ids.sink)
    seen = progress.parse(table.txns, main)
    if undealt_restore(table.log, main, seen) is not None or is_replaced(table, seen):
        raise TableRestored(
            "the table was set back or replaced, and the sink has not dealt with that yet",
            hint="start the pipeline with on_restore: rewind or continue first, or use `offsets reset`",
        )


def rewind(table: Table, ids: AppIds, seen: Progress, dead_letter_uri: str) -> Progress:
    """Where a sink goes on that reads again what is gone; what its epochs did to dead letters is undone."""
    if is_replaced(table, seen):  # the table holds nothing of the sink
        then, base = Then(Progress(), {}, None), replace(seen, offsets={}, topics={})
    else:
        restored = undealt_restore(table.log, ids, seen)
        assert restored is not None
        then = as_restored(table, ids, restored)
        base = decide.rewound(seen, then.progress, then.began)
    dead_letters.forget(
        dead_letter_uri, ids, after=then.progress.epoch, until=seen.epoch, replays=then.replays
    )
    return base


def take_back_marks(table: Table, ids: AppIds, seen: Progress, dead_letter_uri: str) -> None:
    """What a rewind does to the marks of dead letters, for an operator who places the sink by hand."""
    restored = undealt_restore(table.log, ids, seen)
    if is_replaced(table, seen):
        dead_letters.forget(dead_letter_uri, ids, after=0, until=0, replays=None)
    elif restored is not None:
        replays = as_restored(table, ids, restored).replays
        dead_letters.forget(dead_letter_uri, ids, after=0, until=0, replays=replays)


@dataclass(frozen=True)
class Then:
    """What was so in the restored version, and what came between it and the RESTORE."""

    progress: Progress
    began: Offsets  # where partitions of later began
    replays: list[str] | None  # when dead letters were replayed whose events are gone; None: at any time


def as_restored(table: Table, ids: AppIds, restored: int) -> Then:
    """What the rows of the restored table stand for; `restored` is the version of the RESTORE."""
    log = table.log
    version = log.same_files_before(restored)
    try:
        if version is None:
            raise FileNotFoundError
        then = progress.parse(log.at(version).txns, ids)
        later = [log.commit(number) for number in range(version + 1, restored)]
    except FileNotFoundError:
        raise ProgressLost(
            f"the log of {table.spec.uri} no longer tells which version its RESTORE went back to",
            hint="place the sink by hand with `rivermouth offsets reset`, or set on_restore: continue",
        ) from None
    began: Offsets = {}
    replays = []
    for made in later:
        for partition, offset in progress.parse(made.txns, ids).offsets.items():
            began.setdefault(partition, offset)  # its first offset was pinned before any of it was read
        if (made.note.get("pipeline"), made.note.get("sink")) == (ids.pipeline, ids.sink):
            replays += [made.note["replayed"]] if "replayed" in made.note else []
    return Then(then, began, replays)
