"""Write a table's Parquet files: row groups stream out, files roll at a size, partitions have folders.

This runs inside Spark tasks and knows Arrow only. A file's name is random and it counts for nothing until a
commit names it, so what a crashed task leaves behind is never read. A closed file survives the death of
the process; it is not forced to disk, so a power failure right after the commit may lose it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs as arrow_fs

from rivermouth.delta import partitions, shape, statistics
from rivermouth.delta.partitions import Key
from rivermouth.errors import DeltaWriterFailed

CODECS = ("snappy", "gzip", "lz4", "zstd", "none")

_GROUP_ROWS = 256 * 1024
_GROUP_BYTES = 64 * 1024 * 1024
_BUFFER_BYTES = 128 * 1024 * 1024
_OPEN_FILES = 64
# What an Arrow array costs beside its values; many tiny pieces must count as memory too.
_ARRAY_BYTES = 512
# A file this near its target is full: what fits in the rest would be a tiny row group.
_FULL = 0.95


@dataclass(frozen=True)
class FileSpec:
    """A file that was written, as a commit names it.

    `path` is relative to the table's folder and plain: delta-rs percent-encodes it for `add.path`.
    """

    path: str
    size: int
    rows: int
    partition_values: dict[str, str | None]
    stats: str


@dataclass
class _File:
    """A Parquet file being written."""

    path: str
    sink: pa.NativeFile
    writer: pq.ParquetWriter
    footers: list[pq.FileMetaData]
    observer: statistics.Observer

    def write(self, rows: pa.Table) -> int:
        """Write one row group; the bytes it took."""
        before: int = self.sink.tell()
        self.observer.see(rows)
        self.writer.write_table(rows, row_group_size=rows.num_rows)
        return int(self.sink.tell()) - before


@dataclass
class _Partition:
    """The rows of a partition that wait, and the file they go to, once it is open."""

    key: Key
    waiting: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    bytes: int = 0
    file: _File | None = None


class TableWriter:
    """Writes batches of rows as data files of a table; memory and open files are bounded."""

    def __init__(
        self,
        fs: arrow_fs.FileSystem,
        root: str,
        schema: pa.Schema,
        partition_columns: Sequence[str] = (),
        compression: str = "snappy",
        target_file_size: int = 128 * 1024 * 1024,
        stats_columns: int | Sequence[str] = statistics.DEFAULT_INDEXED,
        task: str = "0",
    ) -> None:
        if compression not in CODECS:
            raise DeltaWriterFailed(f"compression {compression!r} is not one of {', '.join(CODECS)}")
        shape.check_schema(schema)
        partitions.check_columns(schema, partition_columns)
        self._fs = fs
        self._root = root.rstrip("/")
        self._schema = schema
        self._columns = tuple(partition_columns)
        self._data_schema = pa.schema([each for each in schema if each.name not in self._columns])
        self._target = target_file_size
        self._plan = statistics.Plan(self._data_schema, stats_columns)
        self._options = _options(compression, self._plan)
        self._task = task
        self._suffix = ".parquet" if compression == "none" else f".{compression}.parquet"
        self._partitions: dict[Key, _Partition] = {}
        self._open: OrderedDict[Key, _Partition] = OrderedDict()  # least recently written first
        self._folders: set[str] = set()
        self._paths: list[str] = []
        self._done: list[FileSpec] = []
        self._buffered = 0
        self._taken = 0  # Arrow bytes that went to files, and the bytes they became
        self._written = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Take the rows of a batch; a null in a required column or a foreign column is refused."""
        if batch.num_rows == 0:
            return
        rows = shape.conform(batch, self._schema)
        shape.check_nulls(rows)
        if partitions.unfit(rows, self._columns) is not None:
            raise DeltaWriterFailed(
                "a partition value is an empty string, or a date outside the years 1 to 9999",
                hint="Delta cannot store it as a partition value; partition by another column",
            )
        for key, part in partitions.split(rows, self._columns):
            for piece in self._pieces(part):
                # Looked up for each piece: a full file ends its partition, and the next piece begins anew.
                self._add(self._partitions.setdefault(key, _Partition(key)), piece)
        if self._buffered > _BUFFER_BYTES:
            self._relieve()

    def close(self) -> list[FileSpec]:
        """Finish every file; the files written, in no particular order. Without rows there are none."""
        for partition in list(self._partitions.values()):
            self._finish(partition)
        return self._done

    def abort(self) -> None:
        """Delete what was written, as far as that is possible; what stays behind is never read."""
        for partition in self._open.values():
            if partition.file is not None:
                for closable in (partition.file.writer, partition.file.sink):
                    _quietly(closable.close)
        for path in self._paths:
            _quietly(self._fs.delete_file, path)
        self._partitions.clear()
        self._open.clear()
        self._paths.clear()
        self._done = []
        self._buffered = 0

    def _pieces(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """A batch cut into pieces no larger than a row group, and small beside a file."""
        pieces = max(rows.num_rows / _GROUP_ROWS, rows.nbytes / min(_GROUP_BYTES, self._target / 8))
        step = rows.num_rows if pieces <= 1 else max(1, int(rows.num_rows / pieces))
        for start in range(0, rows.num_rows, step):
            yield rows.slice(start, step) if step < rows.num_rows else rows

    def _add(self, partition: _Partition, rows: pa.RecordBatch) -> None:
        size = rows.nbytes + _ARRAY_BYTES * rows.num_columns
        partition.waiting.append(rows)
        partition.rows += rows.num_rows
        partition.bytes += size
        self._buffered += size
        full = partition.rows >= _GROUP_ROWS or partition.bytes >= _GROUP_BYTES
        if full or self._expected(partition) >= self._target:
            self._flush(partition)

    def _expected(self, partition: _Partition) -> float:
        """The size of a partition's file if it were flushed now."""
        ratio = self._written / self._taken if self._taken else 1.0
        return (partition.file.sink.tell() if partition.file else 0) + partition.bytes * ratio

    def _flush(self, partition: _Partition) -> None:
        """Write what waits as one row group, and close the file if it is full."""
        file = partition.file or self._start(partition)
        self._written += file.write(pa.Table.from_batches(partition.waiting, self._data_schema))
        self._taken += partition.bytes
        self._buffered -= partition.bytes
        partition.waiting, partition.rows, partition.bytes = [], 0, 0
        self._open.move_to_end(partition.key)
        if file.sink.tell() >= self._target * _FULL:
            self._finish(partition)

    def _relieve(self) -> None:
        """Flush the largest partitions until half the buffer is free."""
        for partition in sorted(self._partitions.values(), key=lambda each: each.bytes, reverse=True):
            if self._buffered <= _BUFFER_BYTES // 2:
                return
            if partition.waiting:  # not so if an earlier flush closed its file to open another
                self._flush(partition)

    def _start(self, partition: _Partition) -> _File:
        while len(self._open) >= _OPEN_FILES:
            self._finish(next(iter(self._open.values())))
        folder = partitions.folder(self._columns, partition.key)
        place = f"{self._root}/{folder}" if folder else self._root
        if place not in self._folders:
            self._fs.create_dir(place, recursive=True)
            self._folders.add(place)
        name = f"part-{self._task}-{uuid4()}{self._suffix}"
        self._paths.append(f"{place}/{name}")
        sink = self._fs.open_output_stream(f"{place}/{name}")
        footers: list[pq.FileMetaData] = []
        writer = pq.ParquetWriter(sink, self._data_schema, metadata_collector=footers, **self._options)
        path = f"{folder}/{name}" if folder else name
        partition.file = _File(path, sink, writer, footers, statistics.Observer(self._plan))
        self._open[partition.key] = partition
        return partition.file

    def _finish(self, partition: _Partition) -> None:
        """Write what waits, close the file and forget the partition."""
        if partition.waiting:
            self._flush(partition)
        self._partitions.pop(partition.key, None)
        file = partition.file
        if file is None:
            return
        partition.file = None
        file.writer.close()
        size = int(file.sink.tell())
        file.sink.close()
        del self._open[partition.key]
        footer = file.footers[0]
        values = dict(zip(self._columns, partition.key, strict=True))
        self._done.append(FileSpec(file.path, size, footer.num_rows, values, file.observer.finish(footer)))


def _options(compression: str, plan: statistics.Plan) -> dict[str, Any]:
    return {
        "compression": compression,  # lz4 is LZ4_RAW, which every reader knows
        # Arrow's own level for gzip, 9, takes twice the time for nothing.
        "compression_level": 6 if compression == "gzip" else None,
        "write_statistics": plan.in_footer,
        # Arrow's 1 MiB lets unique values fill a dictionary first: half the speed, and larger files.
        "dictionary_pagesize_limit": 128 * 1024,
        "store_schema": False,
        "store_decimal_as_integer": True,
        "version": "2.6",  # timestamps in microseconds
    }


def _quietly(action: Any, *arguments: Any) -> None:
    try:
        action(*arguments)
    except Exception:  # noqa: BLE001 - cleaning up must not hide the error that led here
        return
