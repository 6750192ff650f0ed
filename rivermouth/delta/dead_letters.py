"""The dead-letter table: bad records kept whole, committed after the epoch they belong to.

The main commit lists the files; this one refers to them. A process that dies in between leaves the list
in the main table's log, and the next start finishes the work from there.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from rivermouth.delta.commit import Change, commit
from rivermouth.delta.files import FileSpec
from rivermouth.delta.progress import AppIds, Progress
from rivermouth.delta.schema import to_delta
from rivermouth.delta.storage import open_filesystem
from rivermouth.delta.table import Table, TableSpec, is_table, open_table
from rivermouth.errors import ProgressLost, RivermouthError
from rivermouth.formats.base import Rejects
from rivermouth.records import RECORD_SCHEMA, Partition

PARTITION_COLUMNS = ("day",)
SCHEMA = pa.schema(
    [
        *RECORD_SCHEMA,
        pa.field("reason", pa.string(), nullable=False),
        pa.field("message", pa.string(), nullable=False),
        pa.field("pipeline", pa.string(), nullable=False),
        pa.field("sink", pa.string(), nullable=False),
        pa.field("epoch", pa.int64(), nullable=False),
        pa.field("day", pa.date32(), nullable=False),
        pa.field("replayed", pa.timestamp("us", tz="UTC")),
    ]
)

_COMMIT_RETRIES = 10

RECORDS_LOST = "RecordsLost"  # the reason of a gap row, which stands for records and is none


def rows(
    records: pa.RecordBatch, rejects: Rejects, pipeline: str, sink: str, epoch: int, day: datetime.date
) -> pa.RecordBatch:
    """The dead letters of a batch: the rejected records whole, with the reason and whose they were."""
    whole = records.take(pa.array(rejects.rows, pa.int32()))
    count = len(rejects)
    return pa.RecordBatch.from_arrays(
        [
            *whole.columns,
            pa.array(rejects.reasons, pa.string()),
            pa.array(rejects.messages, pa.string()),
            pa.repeat(pa.scalar(pipeline), count),
            pa.repeat(pa.scalar(sink), count),
            pa.repeat(pa.scalar(epoch, pa.int64()), count),
            pa.repeat(pa.scalar(day, pa.date32()), count),
            pa.nulls(count, SCHEMA.field("replayed").type),
        ],
        schema=SCHEMA,
    )


def gaps(losses: list[tuple[Partition, int, str]], pipeline: str, sink: str, epoch: int) -> pa.RecordBatch:
    """Dead letters that stand for records the source has lost: where they began, and what became of them."""
    records = pa.RecordBatch.from_pylist(
        [
            {"topic": partition.topic, "partition": partition.number, "offset": first, "headers": []}
            for partition, first, _ in losses
        ],
        schema=RECORD_SCHEMA,
    )
    told = Rejects(
        list(range(len(losses))), [RECORDS_LOST] * len(losses), [message for _, _, message in losses]
    )
    return rows(records, told, pipeline, sink, epoch, today())


def today() -> datetime.date:
    """The day that new dead letters are filed under."""
    return datetime.datetime.now(datetime.timezone.utc).date()


def spec(uri: str) -> TableSpec:
    """The dead-letter table as we create it and expect it."""
    return TableSpec(uri, SCHEMA, PARTITION_COLUMNS)


def opened(uri: str) -> Table:
    """The dead-letter table, created if there is none; one from before `replayed` gets that column."""
    if is_table(uri):
        there = DeltaTable(uri)
        if [*SCHEMA.names[:-1]] == [column.name for column in there.schema().fields]:
            there.alter.add_columns(to_delta(SCHEMA).fields[-1])
    return open_table(spec(uri), create=True)


def to_note(files: list[FileSpec]) -> list[dict[str, Any]]:
    """The list of files that the main commit carries."""
    return [
        {"path": f.path, "size": f.size, "rows": f.rows, "partition": f.partition_values, "stats": f.stats}
        for f in files
    ]


def from_note(entries: list[dict[str, Any]]) -> list[FileSpec]:
    """The files a main commit listed."""
    return [FileSpec(e["path"], e["size"], e["rows"], e["partition"], e["stats"]) for e in entries]


def land(
    main: Table,
    uri: str,
    ids: AppIds,
    epoch: int,
    files: list[FileSpec],
    instance: str,
    sleep: Callable[[float], object] = time.sleep,
) -> None:
    """Commit an epoch's dead letters, unless they are in already."""
    table = opened(uri)
    app_id = ids.dead_letters(main.id)

    def guard() -> None:
        if table.txns.get(app_id, 0) >= epoch:
            raise _AlreadyIn(f"the dead letters of epoch {epoch} are in")

    note = {"kind": "dead_letters", "pipeline": ids.pipeline, "sink": ids.sink, "epoch": epoch}
    change = Change({app_id: epoch}, {**note, "instance": instance}, files)
    before = table.version
    try:
        commit(table, change, retries=_COMMIT_RETRIES, guard=guard, sleep=sleep)
    except _AlreadyIn:  # before us, by an instance of this pipeline that finished it
        return
    if table.checkpoint_due(before):
        with suppress(Exception):  # they are in; a missing log checkpoint only costs time
            table.checkpoint()


def finish(main: Table, uri: str, ids: AppIds, progress: Progress, instance: str) -> int:
    """Commit the dead letters of the last epoch, if a crash may have kept them out; their number."""
    if progress.rejects == progress.rejects_landed:
        return 0
    for made in main.log.backwards():
        if made.txns.get(ids.rejects) == progress.rejects:
            files = from_note(made.note["rejects"])
            for place in (made.note["dead_letter_uri"], uri):  # the second, on a machine with other folders
                if not is_table(place):
                    continue
                if opened(place).txns.get(ids.dead_letters(main.id), 0) >= progress.rejects:
                    return 0
                if _are_there(place, files):
                    land(main, place, ids, progress.rejects, files, instance)
                    return sum(file.rows for file in files)
            break
    # The commit is gone with old log files; the dead-letter table may still show that nothing is owed.
    if opened(uri).txns.get(ids.dead_letters(main.id), 0) >= progress.rejects:
        return 0
    raise ProgressLost(
        f"the dead letters of epoch {progress.rejects} may not have been committed, and their files, or the "
        f"commit that lists them in the log of {main.spec.uri}, are gone",
        hint="bring them back from a backup; or start anew under another pipeline name",
    )


def forget(uri: str, ids: AppIds, *, after: int, until: int, replays: list[str] | None) -> None:
    """Take back what epochs that are undone did to the dead letters: the sink is rewound.

    Those of the epochs after `after`, up to `until`, are deleted, for their records are met again; `until` is
    the last epoch that the one who rewinds has seen, for a newer owner's are not its own. Letters that were
    marked by the `replays` of these moments (None: any) are bad again: the events they had become are gone.
    """
    if not is_table(uri):
        return
    whose = f"pipeline = '{ids.pipeline}' AND sink = '{ids.sink}'"  # names have no quotes in them
    DeltaTable(uri).delete(f"{whose} AND epoch > {after} AND epoch <= {until}")
    if replays is None:
        DeltaTable(uri).update(updates={"replayed": "NULL"}, predicate=f"{whose} AND replayed IS NOT NULL")
    for moment in replays or []:
        when = f"arrow_cast('{moment}', 'Timestamp(Microsecond, Some(\"UTC\"))')"
        DeltaTable(uri).update(updates={"replayed": "NULL"}, predicate=f"{whose} AND replayed = {when}")


def _are_there(uri: str, files: list[FileSpec]) -> bool:
    """Whether nobody has vacuumed these files away."""
    filesystem, root = open_filesystem(uri)
    found = filesystem.get_file_info([f"{root}/{file.path}" for file in files])
    return all(info.is_file for info in found)


class _AlreadyIn(RivermouthError):
    """The dead letters are in the table: nothing is left to do."""
