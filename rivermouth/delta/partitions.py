"""Partitions: which rows belong together, in which folder, and how Delta writes their values."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.errors import DeltaWriterFailed

Key = tuple["str | None", ...]
"""The values of a partition's columns, in Delta's spelling; None is null."""

# What Hive and Spark call the folder of null.
_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
# The characters Hive and Spark escape in a folder's name.
_ESCAPED = frozenset("\"#%'*/:=?\\{[]^\x7f") | {chr(code) for code in range(32)}
# File systems take names of 255 bytes. Nobody parses a folder's name: the values are in the log.
_LONGEST_NAME = 96

_EPOCH = datetime(1970, 1, 1)
_FIRST_DAY = (date(1, 1, 1) - date(1970, 1, 1)).days
_LAST_DAY = (date(9999, 12, 31) - date(1970, 1, 1)).days
_DAY = 86_400_000_000


def check_columns(schema: pa.Schema, columns: Sequence[str]) -> None:
    """Refuse partition columns that are missing, repeated, of an unfit type, or all there is."""
    for name in columns:
        if schema.get_field_index(name) < 0:
            raise DeltaWriterFailed(f"partition column {name!r} is not a column of the table")
        kind = schema.field(name).type
        if not _is_partition_type(kind):
            raise DeltaWriterFailed(f"column {name!r} of type {kind} cannot be a partition column")
    if len(set(columns)) != len(columns):
        raise DeltaWriterFailed(f"a partition column is named twice: {', '.join(columns)}")
    if columns and len(columns) == len(schema.names):
        raise DeltaWriterFailed("every column is a partition column; a table needs one that is not")


def unfit(batch: pa.RecordBatch, columns: Sequence[str]) -> pa.BooleanArray | None:
    """The rows with a partition value that Delta cannot tell from another; None when there is no such row.

    An empty string is null to every Delta reader, and a year outside 1 to 9999 has no spelling. The
    caller sets these rows aside; the writer refuses them.
    """
    found: pa.BooleanArray | None = None
    for name in columns:
        rows = _unfit(batch.column(name))
        if rows is not None and pc.any(rows).as_py():
            rows = pc.fill_null(rows, False)
            found = rows if found is None else pc.or_(found, rows)
    return found


def split(batch: pa.RecordBatch, columns: Sequence[str]) -> Iterator[tuple[Key, pa.RecordBatch]]:
    """The rows of each partition in a batch, without the partition columns, in their order."""
    data = batch.drop_columns(list(columns)) if columns else batch
    codes = _codes(batch, columns)
    if codes is None:
        yield _key(batch, columns, 0), data
        return
    order = pc.sort_indices(codes)
    start = 0
    # Codes are numbered as they first appear, and that is the order of the counts.
    for count in pc.value_counts(codes).field("counts").to_pylist():
        rows = order.slice(start, count)
        # A copy for each partition: a slice would keep the rows of all of them in memory.
        yield _key(batch, columns, rows[0].as_py()), data.take(rows)
        start += count


def folder(columns: Sequence[str], key: Key) -> str:
    """The folder of a partition below the table's, as Hive and Spark name it; empty without partitions."""
    return "/".join(
        f"{_name(column)}={_NULL_FOLDER if value is None else _name(value)}"
        for column, value in zip(columns, key, strict=True)
    )


def serialize(value: pa.Scalar) -> str | None:
    """A partition value as the Delta protocol spells it in `partitionValues`."""
    if not value.is_valid:
        return None
    kind = value.type
    if pa.types.is_timestamp(kind):
        moment = _EPOCH + timedelta(microseconds=value.value)
        if kind.tz is None:
            return moment.isoformat(" ", "microseconds")
        # Without the Z a reader would take its own time zone.
        return moment.isoformat("T", "microseconds") + "Z"
    if pa.types.is_boolean(kind):
        return "true" if value.as_py() else "false"
    if pa.types.is_decimal(kind):
        return format(value.as_py(), "f")
    if pa.types.is_floating(kind):
        number: float = value.as_py()
        if math.isinf(number):
            return "Infinity" if number > 0 else "-Infinity"
        return "NaN" if math.isnan(number) else repr(number)
    return str(value.as_py())


def _is_partition_type(kind: pa.DataType) -> bool:
    types = pa.types
    tests = (
        types.is_string,
        types.is_large_string,
        types.is_boolean,
        types.is_signed_integer,
        types.is_float32,
        types.is_float64,
        types.is_decimal,
        types.is_date32,
        types.is_timestamp,
    )
    return any(test(kind) for test in tests)


def _unfit(column: pa.Array) -> pa.BooleanArray | None:
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pc.equal(pc.binary_length(column), 0)
    if pa.types.is_date32(kind):
        return _outside(column.view(pa.int32()), _FIRST_DAY, _LAST_DAY)
    if pa.types.is_timestamp(kind):
        return _outside(column.view(pa.int64()), _FIRST_DAY * _DAY, (_LAST_DAY + 1) * _DAY - 1)
    return None


def _outside(numbers: pa.Array, first: int, last: int) -> pa.BooleanArray:
    return pc.or_(pc.less(numbers, first), pc.greater(numbers, last))


def _codes(batch: pa.RecordBatch, columns: Sequence[str]) -> pa.Array | None:
    """A number per row, the same for rows of the same partition; None when there is one partition."""
    codes: pa.Array | None = None
    for name in columns:
        encoded = batch.column(name).dictionary_encode("encode")
        if len(encoded.dictionary) == 1:
            continue
        if codes is None:
            codes = encoded.indices
        else:
            pairs = pc.multiply(codes.cast(pa.int64()), len(encoded.dictionary))
            codes = pc.add(pairs, encoded.indices.cast(pa.int64())).dictionary_encode().indices
    return codes


def _key(batch: pa.RecordBatch, columns: Sequence[str], row: int) -> Key:
    return tuple(serialize(batch.column(name)[row]) for name in columns)


def _name(text: str) -> str:
    escaped = "".join(f"%{ord(char):02X}" if char in _ESCAPED else char for char in text)
    if len(escaped.encode()) <= _LONGEST_NAME:
        return escaped
    digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
    return f"{_name(text[:16])}~{digest}"
