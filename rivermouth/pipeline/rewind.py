"""Finds out how far a sink had come in the version that a RESTORE of its table went back to."""

from __future__ import annotations

from dataclasses import dataclass

from rivermouth.delta import progress
from rivermouth.delta.progress import AppIds, Progress
from rivermouth.delta.table import Table
from rivermouth.errors import ProgressLost
from rivermouth.records import Offsets


@dataclass(frozen=True)
class Then:
    """What was so in the restored version, and what came between it and the RESTORE."""

    progress: Progress
    began: Offsets  # where partitions of later began
    replays: list[str]  # when dead letters were replayed whose events are gone


NOTHING = Then(Progress(), {}, [])
"""For a table that was replaced: it holds nothing of the sink."""


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
    for made in later:
        for partition, offset in progress.parse(made.txns, ids).offsets.items():
            began.setdefault(partition, offset)  # its first offset was pinned before any of it was read
    mine = [
        made.note
        for made in later
        if (made.note.get("pipeline"), made.note.get("sink")) == (ids.pipeline, ids.sink)
    ]
    return Then(then, began, [note["replayed"] for note in mine if "replayed" in note])
