"""Finds out how far a sink had come in the version that a RESTORE of its table went back to."""

from __future__ import annotations

from rivermouth.delta import progress
from rivermouth.delta.progress import AppIds, Progress
from rivermouth.delta.table import Table
from rivermouth.errors import ProgressLost
from rivermouth.records import Offsets


def as_restored(table: Table, ids: AppIds, restored: int) -> tuple[Progress, Offsets]:
    """The progress that the rows of the restored table stand for, and where partitions of later began.

    `restored` is the version of the commit that did the RESTORE.
    """
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
    return then, began
