"""What one Spark task of an epoch does, inside a Python worker: decode, write, tell.

Records come in as Arrow batches and leave as Parquet files; the driver gets one small row per file.
"""

from __future__ import annotations

import datetime
import functools
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rivermouth import formats
from rivermouth.delta import dead_letters, marks, partitions
from rivermouth.delta.files import FileSpec, TableWriter
from rivermouth.delta.statistics import DEFAULT_INDEXED
from rivermouth.delta.storage import open_filesystem
from rivermouth.formats import rows as record_rows
from rivermouth.formats.base import WRONG_TYPE, Decoded, Format, Rejects
from rivermouth.records import RECORD_SCHEMA

RESULT_DDL = "kind string, body string"
_RESULT_SCHEMA = pa.schema([("kind", pa.string()), ("body", pa.string())])
_EXCERPT = 200


@dataclass(frozen=True)
class FilePlan:
    """Where a sink's files go and what they look like."""

    uri: str
    schema: pa.Schema
    partition_columns: tuple[str, ...]
    compression: str
    target_file_size: int
    indexed_columns: int | tuple[str, ...] = DEFAULT_INDEXED

    def writer(self, task: str) -> TableWriter:
        """A writer of such files, for the task of that name."""
        filesystem, root = open_filesystem(self.uri)
        return TableWriter(
            filesystem,
            root,
            self.schema,
            self.partition_columns,
            self.compression,
            self.target_file_size,
            self.indexed_columns,
            task,
        )


@dataclass(frozen=True)
class Task:
    """One epoch's work, as it travels to the workers."""

    schema_type: str
    event_schema: pa.Schema | None  # in decode types
    events: FilePlan
    dead_letters: FilePlan | None  # None: bad records are not kept
    pipeline: str
    sink: str
    epoch: int
    day: datetime.date
    marks: FilePlan | None = None  # where to note which records became events

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take a partition's records to files; the one function that Spark calls."""
        number, attempt = _place()
        # A worker that died on some input left its first attempt: go record by record, nothing crashes that.
        careful = attempt > 0
        decoder = _format(self.schema_type, self.event_schema)
        events = self.events.writer(number)
        rejected = self.dead_letters.writer(number) if self.dead_letters else None
        marked = self.marks.writer(number) if self.marks else None
        writers = [writer for writer in (events, rejected, marked) if writer]
        read, largest, reasons, sample = 0, 0, Counter[str](), None
        try:
            for batch in batches:
                read += batch.num_rows
                if batch.num_rows == 0:
                    continue
                records = batch.cast(RECORD_SCHEMA)
                largest = max(largest, _largest(records))
                decoded = decoder.decode(records, careful=careful)
                decoded = set_aside(decoded, records.num_rows, self.events.partition_columns)
                if decoded.events.num_rows:
                    events.write(decoded.events)
                    if marked:
                        marked.write(marks.of(records, decoded.kept))
                if len(decoded.rejects):
                    reasons.update(decoded.rejects.reasons)
                    sample = sample or _sample(records, decoded.rejects)
                    if rejected:
                        rejected.write(self._dead_letters(records, decoded.rejects))
            rows = [("event file", _file_body(f)) for f in events.close()]
            rows += [("dead-letter file", _file_body(f)) for f in (rejected.close() if rejected else [])]
            rows += [("mark file", _file_body(f)) for f in (marked.close() if marked else [])]
        except BaseException:
            for writer in writers:
                writer.abort()
            raise
        counts = {"read": read, "largest": largest, "rejected": reasons, "sample": sample}
        rows.append(("counts", json.dumps(counts)))
        yield pa.RecordBatch.from_pylist([{"kind": k, "body": b} for k, b in rows], schema=_RESULT_SCHEMA)

    def _dead_letters(self, records: pa.RecordBatch, rejects: Rejects) -> pa.RecordBatch:
        return dead_letters.rows(records, rejects, self.pipeline, self.sink, self.epoch, self.day)


@dataclass(frozen=True)
class Result:
    """What all tasks of an epoch did together."""

    read: int
    events: list[FileSpec]
    dead_letters: list[FileSpec]
    rejected: dict[str, int]  # by reason
    sample: str | None  # one bad record, described
    largest: int = 0  # bytes of the largest key and value
    marks: list[FileSpec] = field(default_factory=list)

    @property
    def written(self) -> int:
        return sum(file.rows for file in self.events)


def gather(rows: list[tuple[str, str]]) -> Result:
    """Put together the rows that the tasks of an epoch gave."""
    read, largest, rejected, sample = 0, 0, Counter[str](), None
    files: dict[str, list[FileSpec]] = {"event file": [], "dead-letter file": [], "mark file": []}
    for kind, text in rows:
        body = json.loads(text)
        if kind == "counts":
            read += body["read"]
            largest = max(largest, body["largest"])
            rejected.update(body["rejected"])
            sample = sample or body["sample"]
        else:
            files[kind].append(FileSpec(**body))
    events, dead, marked = files.values()
    return Result(read, events, dead, dict(rejected), sample, largest, marked)


def set_aside(decoded: Decoded, count: int, columns: tuple[str, ...]) -> Decoded:
    """Reject the events whose partition value Delta cannot store, of a batch of `count` records."""
    unfit = partitions.unfit(decoded.events, columns)
    if unfit is None:
        return decoded
    places = range(count) if decoded.kept is None else decoded.kept.to_pylist()
    rejects = Rejects(*(list(part) for part in vars(decoded.rejects).values()))
    for row, bad in enumerate(unfit.to_pylist()):
        if bad:
            told = "an empty string, or a year outside 1 to 9999, cannot be a partition value"
            rejects.add(places[row], WRONG_TYPE, f"{', '.join(columns)}: {told}")
    rejects = record_rows.in_order(rejects)
    events = decoded.events.filter(pc.invert(unfit))
    return Decoded(events, record_rows.kept(count, rejects), rejects)


def _largest(records: pa.RecordBatch) -> int:
    """The bytes of the largest key and of the largest value."""
    lengths = (pc.max(pc.binary_length(records.column(name))).as_py() for name in ("key", "value"))
    return sum(length or 0 for length in lengths)


def _file_body(file: FileSpec) -> str:
    return json.dumps(vars(file))


def _sample(records: pa.RecordBatch, rejects: Rejects) -> str:
    """Describe the first bad record of a batch, for `on_bad_record: fail`."""
    # Not the timestamp: it may lie where Python has no dates.
    told = records.slice(rejects.rows[0], 1).select(["topic", "partition", "offset", "value", "headers"])
    row: dict[str, Any] = told.to_pylist()[0]
    value = row["value"]
    shown = "null" if value is None else repr(value[:_EXCERPT]) + ("..." if len(value) > _EXCERPT else "")
    place = f"{row['topic']}/{row['partition']} offset {row['offset']}"
    file = next((h["value"] for h in row["headers"] or () if h["key"] == "file"), None)
    if file:  # a file name need not be text, nor need a header of that name be a file's
        place += f" ({file.decode(errors='backslashreplace')})"
    return f"{place}: {rejects.reasons[0]}: {rejects.messages[0]}; value {shown}"


@functools.lru_cache(maxsize=64)
def _format(schema_type: str, schema: pa.Schema | None) -> Format:
    """A format for the life of the worker: it remembers what kind of mistakes a stream has."""
    return formats.create(schema_type, schema)


def _place() -> tuple[str, int]:
    """Which task of its job this is, and which attempt at it."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return (f"{context.partitionId():05d}", context.attemptNumber()) if context else ("00000", 0)
