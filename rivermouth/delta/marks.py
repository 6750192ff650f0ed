"""Marks dead letters as replayed, after the events that they have become are in the main table.

Which ones is noted in files that the main commit lists, so that a process that dies in between leaves all
that is needed to finish it. To mark twice changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError
from pyarrow import fs

from rivermouth.delta.commit import delays
from rivermouth.delta.files import FileSpec
from rivermouth.delta.progress import AppIds
from rivermouth.delta.storage import open_filesystem
from rivermouth.errors import DeltaCommitFailed
from rivermouth.records import RECORD_SCHEMA

# What tells a record from all others; two files of one folder may differ in the headers alone.
_PLACE = ("topic", "partition", "offset", "timestamp", "headers")
SCHEMA = pa.schema([RECORD_SCHEMA.field(name) for name in _PLACE])

_RETRIES = 8


def of(records: pa.RecordBatch, kept: pa.Array | None) -> pa.RecordBatch:
    """Which records became events: all of a batch, or those kept."""
    chosen = records.select(SCHEMA.names)
    return chosen if kept is None else chosen.take(kept)


def folder(dead_letter_uri: str, ids: AppIds, generation: int | None = None) -> str:
    """Where the notes of a replay lie: beside the dead letters, in a folder that vacuum leaves alone."""
    replays = f"{dead_letter_uri}/_rivermouth/{ids.pipeline}/{ids.sink}/replays"
    return replays if generation is None else f"{replays}/{generation}"


def land(
    dead_letter_uri: str,
    ids: AppIds,
    generation: int,
    files: list[FileSpec],
    when: datetime,
    sleep: Callable[[float], object] = time.sleep,
) -> None:
    """Mark the dead letters that the notes name, and remove the notes; those that are gone were done with."""
    filesystem, root = open_filesystem(folder(dead_letter_uri, ids, generation))
    paths = [f"{root}/{file.path}" for file in files]
    there = [
        path
        for path, info in zip(paths, filesystem.get_file_info(paths), strict=True)
        if info.type is fs.FileType.File
    ]
    for path in there:
        with filesystem.open_input_file(path) as file:
            _mark(dead_letter_uri, ids, pq.ParquetFile(file).read(), when, sleep)
    for path in there:
        filesystem.delete_file(path)


def clear(dead_letter_uri: str, ids: AppIds, generation: int) -> None:
    """Remove the notes of earlier owners: they were never committed, or have been finished."""
    filesystem, root = open_filesystem(folder(dead_letter_uri, ids))
    for info in filesystem.get_file_info(fs.FileSelector(root, allow_not_found=True)):
        if info.base_name.isdigit() and int(info.base_name) < generation:
            filesystem.delete_dir(info.path)


def are_there(dead_letter_uri: str, ids: AppIds) -> bool:
    """Whether there are notes of any owner."""
    filesystem, root = open_filesystem(folder(dead_letter_uri, ids))
    found = filesystem.get_file_info(fs.FileSelector(root, allow_not_found=True, recursive=True))
    return any(info.is_file for info in found)


def _mark(uri: str, ids: AppIds, records: pa.Table, when: datetime, sleep: Callable[[float], object]) -> None:
    marked = records.append_column(
        "replayed", pa.repeat(pa.scalar(when, pa.timestamp("us", "UTC")), len(records))
    )
    same = " AND ".join(f"(l.{name} IS NOT DISTINCT FROM m.{name})" for name in SCHEMA.names)
    whose = f"l.pipeline = '{ids.pipeline}' AND l.sink = '{ids.sink}'"  # names have no quotes in them
    failure: Exception | None = None
    for delay in [0.0, *delays(_RETRIES)]:
        sleep(delay)
        try:
            (
                DeltaTable(uri)
                .merge(
                    marked,
                    predicate=f"{same} AND {whose} AND l.replayed IS NULL",
                    source_alias="m",
                    target_alias="l",
                )
                .when_matched_update({"replayed": "m.replayed"})
                .execute()
            )
            return
        except CommitFailedError as error:  # new dead letters came in at the same moment
            failure = error
    raise DeltaCommitFailed(f"the dead letters of {uri} could not be marked as replayed: {failure}")
