"""Tables for the writer's tests: random rows, written and committed, and filters in each dialect."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.transaction import AddAction, create_table_with_add_actions
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from rivermouth.delta.files import FileSpec, TableWriter
from rivermouth.delta.storage import open_filesystem

UTC = timezone.utc


def write(root: Path, batches: Sequence[pa.RecordBatch], **options: Any) -> list[FileSpec]:
    """Write each batch as files of its own."""
    files = []
    for batch in batches:
        fs, folder = open_filesystem(str(root))
        writer = TableWriter(fs, folder, options.get("schema", batch.schema), **_without_schema(options))
        writer.write(batch)
        files.extend(writer.close())
    return files


def create(root: Path, schema: pa.Schema, files: Sequence[FileSpec], by: Sequence[str] = ()) -> DeltaTable:
    """Make a Delta table of files that are already there."""
    adds = [AddAction(f.path, f.size, f.partition_values, 0, True, f.stats) for f in files]
    create_table_with_add_actions(str(root), Schema.from_arrow(schema), adds, "error", list(by))
    return DeltaTable(str(root))


def on_disk(root: Path) -> list[str]:
    """The data files below a folder, sorted."""
    found = (os.path.relpath(path, root) for path in root.rglob("*.parquet"))
    return sorted(path for path in found if not path.startswith("_delta_log"))


def _without_schema(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "schema"}


@dataclass(frozen=True)
class Kind:
    """A column type, its values, and how each dialect writes one."""

    type: pa.DataType
    values: SearchStrategy[Any]
    duckdb: Callable[[Any], str]
    datafusion: Callable[[Any], str]


def _integer(bits: int) -> Kind:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    kinds = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
    edges = st.sampled_from([low, low + 1, -1, 0, 1, high - 1, high])
    return Kind(kinds[bits], edges | st.integers(low, high), str, str)


def _cast(name: str) -> Callable[[Any], str]:
    return lambda value: f"CAST('{value}' AS {name})"


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _decimal(precision: int, scale: int) -> Kind:
    most = 10**precision - 1
    numbers = st.integers(-most, most) | st.sampled_from([-most, -1, 0, 1, most])
    values = numbers.map(lambda number: Decimal((int(number < 0), _digits(number), -scale)))
    plain = _cast(f"DECIMAL({precision},{scale})")

    def cast(value: Decimal) -> str:
        return plain(format(value, "f"))

    return Kind(pa.decimal128(precision, scale), values, cast, cast)


def _digits(number: int) -> tuple[int, ...]:
    return tuple(int(digit) for digit in str(abs(number)))


def _datafusion_timestamp(zone: str) -> Callable[[datetime], str]:
    def literal(value: datetime) -> str:
        text = value.replace(tzinfo=None).isoformat("T", "microseconds")
        return f"arrow_cast('{text}{'Z' if zone else ''}', 'Timestamp(Microsecond, {zone or 'None'})')"

    return literal


# Long runs of few characters, so that truncated prefixes collide; no NUL, which SQL text cannot hold.
_TEXT = (
    st.text(st.sampled_from(sorted(set("ab\x7fé\ud7ff\ue000\uffff\U0001f600\U0010ffff'%/ "))), max_size=40)
    | st.builds(
        lambda head, char, length: head + char * length,
        st.sampled_from(["", "a", "\U0010ffff"]),
        st.sampled_from(["a", "\ud7ff", "\U0010ffff", "\U0001f600"]),
        st.integers(30, 35),
    )
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=50)
)
_FLOATS = [0.0, -0.0, 1.0, -1.5, 5e-324, 1e308, float("inf"), float("-inf"), float("nan")]
_FLOATS32 = [0.0, -0.0, 0.10000000149011612, float("inf"), float("-inf"), float("nan")]
_EARLIEST, _LATEST = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)
_MOMENTS = st.datetimes(_EARLIEST, _LATEST) | st.sampled_from(
    [
        _EARLIEST,
        _LATEST,
        datetime(1969, 12, 31, 23, 59, 59, 999999),
        datetime(1970, 1, 1),
        datetime(1970, 1, 1, 0, 0, 0, 1),
        datetime(2026, 1, 1, 12, 0, 0, 999),
        datetime(2026, 1, 1, 12, 0, 0, 1000),
        datetime(2026, 1, 1, 12, 0, 0, 1001),
    ]
)

KINDS: dict[str, Kind] = {
    "byte": _integer(8),
    "short": _integer(16),
    "int": _integer(32),
    "long": _integer(64),
    "double": Kind(pa.float64(), st.sampled_from(_FLOATS) | st.floats(), _cast("DOUBLE"), _cast("DOUBLE")),
    "float": Kind(
        pa.float32(), st.sampled_from(_FLOATS32) | st.floats(width=32), _cast("FLOAT"), _cast("FLOAT")
    ),
    "decimal9": _decimal(9, 2),
    "decimal18": _decimal(18, 0),
    "decimal38": _decimal(38, 10),
    "string": Kind(pa.string(), _TEXT, _quoted, _quoted),
    "boolean": Kind(pa.bool_(), st.booleans(), str, str),
    "date": Kind(
        pa.date32(),
        st.dates() | st.sampled_from([date(1, 1, 1), date(9999, 12, 31), date(1969, 12, 31)]),
        _cast("DATE"),
        _cast("DATE"),
    ),
    "timestamp": Kind(
        pa.timestamp("us", "UTC"),
        _MOMENTS.map(lambda value: value.replace(tzinfo=UTC)),
        lambda value: f"TIMESTAMPTZ '{value.isoformat(' ', 'microseconds')}'",
        _datafusion_timestamp('Some("UTC")'),
    ),
    "timestamp_ntz": Kind(
        pa.timestamp("us"),
        _MOMENTS,
        lambda value: f"TIMESTAMP '{value.isoformat(' ', 'microseconds')}'",
        _datafusion_timestamp(""),
    ),
}


@dataclass(frozen=True)
class Sample:
    """A table in several files, with a column `id` that tells its rows apart, and a filter on `x`."""

    kind: Kind
    batches: list[pa.RecordBatch]
    operator: str
    operands: tuple[Any, ...]
    nested: bool

    @property
    def schema(self) -> pa.Schema:
        return self.batches[0].schema

    @property
    def rows(self) -> pa.Table:
        return pa.Table.from_batches(self.batches)

    def sql(self, literal: Callable[[Any], str], column: str) -> str:
        """The filter in a dialect."""
        if self.operator == "between":
            return f"{column} BETWEEN {literal(self.operands[0])} AND {literal(self.operands[1])}"
        if self.operator in ("is null", "is not null"):
            return f"{column} {self.operator}"
        return f"{column} {self.operator} {literal(self.operands[0])}"


@st.composite
def samples(draw: st.DrawFn, names: Sequence[str] = tuple(KINDS), nested: bool | None = None) -> Sample:
    """A few files of a few rows, and a filter whose operands are near the values."""
    kind = KINDS[draw(st.sampled_from(list(names)))]
    inside = draw(st.booleans()) if nested is None else nested
    files = draw(st.lists(st.lists(st.none() | kind.values, min_size=1, max_size=4), min_size=1, max_size=4))
    there = [value for rows in files for value in rows if value is not None]
    operand = kind.values
    if there:
        near = [*there, *(other for value in there for other in neighbours(value))]
        operand = st.sampled_from(near) | kind.values
    operator = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "between", "is null", "is not null"]))
    batches = []
    start = 0
    for rows in files:
        values = pa.array(rows, kind.type)
        if inside:
            valid = pa.array([value is None and draw(st.booleans()) for value in rows])
            values = pa.StructArray.from_arrays([values], fields=[pa.field("x", kind.type)], mask=valid)
        ids = pa.array(range(start, start + len(rows)), pa.int64())
        batches.append(pa.record_batch([ids, values], schema=_schema(values.type)))
        start += len(rows)
    return Sample(kind, batches, operator, (draw(operand), draw(operand)), inside)


def _schema(kind: pa.DataType) -> pa.Schema:
    column = "s" if pa.types.is_struct(kind) else "x"
    return pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field(column, kind)])


def neighbours(value: Any) -> list[Any]:
    """Values close to this one, which a wrongly rounded bound would confuse with it."""
    if isinstance(value, str):
        return [value[:32], value + "a", value[:31] + "\U0010ffff"]
    steps: list[timedelta] = []
    if isinstance(value, datetime):
        steps = [timedelta(microseconds=step) for step in (-1000, -1, 1, 999)]
    elif isinstance(value, date):
        steps = [timedelta(days=step) for step in (-1, 1)]
    near = []
    for step in steps:
        try:
            near.append(value + step)
        except OverflowError:
            continue
    return near
