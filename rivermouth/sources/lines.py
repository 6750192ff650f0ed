"""Reads the lines of files as records, inside a Python worker: plain Arrow code, no Spark.

A record's offset is the place of its line's first byte, in the text as it is after decompression.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.records import RECORD_SCHEMA

# The path is bytes: a file name need not be text.
SPLIT_DDL = "path binary, topic string, modified double, size bigint, begin bigint, stop bigint"
SPLIT_BYTES = 64 << 20
BLOCK_BYTES = 4 << 20
TO_THE_END = -1

Places = npt.NDArray[np.int64]
_CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_BOM = b"\xef\xbb\xbf"


def splits(path: str, size: int) -> list[tuple[int, int]]:
    """The parts of a file that tasks can read on their own; a compressed file has only one."""
    if _codec(path):
        return [(0, TO_THE_END)]
    return [(at, min(at + SPLIT_BYTES, size)) for at in range(0, size, SPLIT_BYTES)]


def read_lines(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read the lines of file parts, each a row of `SPLIT_DDL`; the function that Spark calls."""
    for batch in batches:
        for part in batch.to_pylist():
            yield from records(**part)


def records(
    path: bytes, topic: str, modified: float, size: int, begin: int = 0, stop: int = TO_THE_END
) -> Iterator[pa.RecordBatch]:
    """The records of one part of a file, as far as it had come when it was taken."""
    codec = _codec(path)
    try:
        with pa.OSFile(path) as raw:
            stream = pa.CompressedInputStream(raw, codec) if codec else raw
            for values, places in lines(stream, begin, stop, None if codec else size):
                yield _records(values, places, topic, modified, [("file", path)])
    except OSError as error:
        # Damage in the data has no number; a fault of the machine has one, may pass, and fails the task.
        if error.errno not in (None, errno.ENOENT):
            raise
        # The lines before the damage are in. A record without a value says that there were more: it becomes
        # a dead letter that names the file and the reason.
        headers = [("file", path), ("error", str(error).encode(errors="backslashreplace"))]
        nothing = pa.nulls(1, pa.binary())
        yield _records(nothing, np.array([begin], np.int64), topic, modified, headers)


def lines(
    stream: pa.NativeFile, begin: int, stop: int, limit: int | None
) -> Iterator[tuple[pa.Array, Places]]:
    """The lines that start in [begin, stop) with their places, reading no further than `limit`."""
    at, rest = begin, b""
    drop = begin > 0
    if drop:  # from the byte before: a line that starts exactly at `begin` has its newline there
        at = begin - 1
        stream.seek(at)
    while True:
        want = BLOCK_BYTES if limit is None else min(BLOCK_BYTES, limit - at - len(rest))
        block = stream.read(want) if want > 0 else b""
        data = rest + block
        cut_off = want > 0 and not block and limit is not None
        end = data.rfind(b"\n") + 1 if block else len(data)  # the last line may lack its newline
        if end:
            values, places = _cut(data[:end], at)
            if drop:
                values, places, drop = values[1:], places[1:], False
            mine = len(places) if stop == TO_THE_END else int(np.searchsorted(places, stop))
            yield values[:mine], places[:mine]
            if mine < len(places):
                return
        if cut_off:
            raise OSError(f"the file ends after {at + len(data)} bytes; when it was taken it had {limit}")
        at, rest = at + end, data[end:]
        if not block or (stop != TO_THE_END and at >= stop):
            return


def _cut(data: bytes, at: int) -> tuple[pa.Array, Places]:
    """Lines without their newline, and their places; no line becomes a Python object."""
    body = data[:-1] if data.endswith(b"\n") else data
    values = pc.split_pattern(pa.array([body], pa.binary()), b"\n").values
    lengths = pc.binary_length(values).to_numpy(zero_copy_only=False).astype(np.int64)
    places = at + np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths + 1)[:-1]])
    if b"\r\n" in data:
        values = pc.replace_substring_regex(values, r"\r$", b"")
    if at == 0 and data.startswith(_BOM):
        values = pa.concat_arrays([pa.array([values[0].as_py()[len(_BOM) :]], pa.binary()), values[1:]])
    return values, places


def _records(
    values: pa.Array, places: Places, topic: str, modified: float, headers: list[tuple[str, bytes]]
) -> pa.RecordBatch:
    # A blank line is no record; a missing value is one.
    filled = pc.fill_null(pc.greater(pc.binary_length(values), 0), True)
    values, offsets = values.filter(filled), pa.array(places, pa.int64()).filter(filled)
    moment = datetime.fromtimestamp(modified, timezone.utc)
    entries = [{"key": key, "value": value} for key, value in headers]
    constant = {"topic": topic, "partition": 0, "timestamp": moment, "headers": entries}
    columns = {"key": pa.nulls(len(values), pa.binary()), "value": values, "offset": offsets}
    first = pa.array(np.zeros(len(values), np.int64))
    for name, value in constant.items():
        columns[name] = pa.array([value], RECORD_SCHEMA.field(name).type).take(first)
    return pa.RecordBatch.from_arrays([columns[name] for name in RECORD_SCHEMA.names], schema=RECORD_SCHEMA)


def _codec(path: str | bytes) -> str | None:
    return _CODECS.get(os.path.splitext(os.fsdecode(path))[1].lower())
