"""Statistics of a data file, as readers use them to skip it: a bound may be wide or absent, never wrong.

Most come from the Parquet footer, where they cost nothing. Not those of floats: Parquet leaves NaN out of
its bounds, and engines in which NaN is greater than every number (Spark, DuckDB, DataFusion) then skip
rows they should find. So floats have no statistics in the footer, and theirs are taken while writing.

A file has bounds for all its columns or for none: where there are some, deltalake's `to_pyarrow_dataset`
takes a missing one for "no value matches".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

DEFAULT_INDEXED = 32
_PREFIX = 32  # characters of a string that go into the log
_LONGEST_IN_FOOTER = 4096  # bytes of a string; Parquet leaves out bounds that are longer
_LAST_CHARACTER = 0x10FFFF
_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True)
class Leaf:
    """A column that holds values, by its names from the top; `column` is its number in the file."""

    path: tuple[str, ...]
    type: pa.DataType
    column: int

    @property
    def is_observed(self) -> bool:
        """Whether its statistics are taken while writing, not from the footer."""
        return bool(pa.types.is_floating(self.type) or pa.types.is_nested(self.type))


class Plan:
    """Which columns of a table have statistics.

    `indexed` is what the table property `delta.dataSkippingNumIndexedCols` says, a number of columns from
    the first (-1: all), or `delta.dataSkippingStatsColumns`, the names of columns.
    """

    def __init__(self, schema: pa.Schema, indexed: int | Sequence[str] = DEFAULT_INDEXED) -> None:
        leaves = _leaves(schema, (), 0)
        if isinstance(indexed, int):
            self.leaves = leaves if indexed < 0 else leaves[:indexed]
        else:
            names = set(indexed)
            self.leaves = [leaf for leaf in leaves if _prefixes(leaf.path) & names]
        without = {".".join(leaf.path) for leaf in leaves if leaf.is_observed}
        # In the names Parquet knows; contents of arrays and maps are not among them.
        self.in_footer = sorted({".".join(leaf.path) for leaf in leaves} - without)
        self.observed = [leaf for leaf in self.leaves if leaf.is_observed]


def indexed_columns(properties: Mapping[str, str]) -> int | tuple[str, ...]:
    """What the properties of a table say about statistics, for `Plan`."""
    named = properties.get("delta.dataSkippingStatsColumns")
    if named is not None:
        return tuple(name.strip().replace("`", "") for name in named.split(",") if name.strip())
    return int(properties.get("delta.dataSkippingNumIndexedCols", DEFAULT_INDEXED))


@dataclass
class _Bounds:
    """What is known of a column so far; `known` turns false for good when a bound is missing."""

    nulls: int | None = 0
    low: Any = None
    high: Any = None
    known: bool = True

    def widen(self, low: Any, high: Any) -> None:
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)


@dataclass
class Observer:
    """Takes the statistics of one file: `see` each row group, then `finish` with the footer."""

    plan: Plan
    _seen: dict[int, _Bounds] = field(default_factory=dict)  # by column
    _groups: int = 0
    _long: set[tuple[int, int]] = field(default_factory=set)  # row group and column

    def see(self, rows: pa.Table) -> None:
        """Look at a row group before it is written."""
        for leaf in self.plan.leaves:
            bounds = self._seen.setdefault(leaf.column, _Bounds())
            if leaf.is_observed:
                values = _values(rows, leaf.path)
                bounds.nulls = (bounds.nulls or 0) + values.null_count
                if pa.types.is_floating(leaf.type) and values.null_count < len(values):
                    _see_floats(bounds, values)
            elif _is_text(leaf.type):
                values = _values(rows, leaf.path)
                if (pc.max(pc.binary_length(values)).as_py() or 0) > _LONGEST_IN_FOOTER:
                    ends = pc.min_max(values).as_py()
                    bounds.widen(ends["min"].encode(), ends["max"].encode())
                    self._long.add((self._groups, leaf.column))
        self._groups += 1

    def finish(self, footer: pq.FileMetaData) -> str:
        """The statistics as the JSON of an `add` action."""
        lows: dict[str, Any] = {}
        highs: dict[str, Any] = {}
        nulls: dict[str, Any] = {}
        complete = True
        for leaf in self.plan.leaves:
            bounds = self._seen[leaf.column]
            if not leaf.is_observed:
                self._add_footer(bounds, footer, leaf)
            if bounds.nulls is not None:
                _put(nulls, leaf.path, bounds.nulls)
            if not _has_bounds(leaf.type) or bounds.nulls == footer.num_rows:
                continue
            low, high = (
                (_low(bounds.low, leaf.type), _high(bounds.high, leaf.type)) if bounds.known else (None, None)
            )
            complete = complete and low is not None and high is not None
            _put(lows, leaf.path, low)
            _put(highs, leaf.path, high)
        found: dict[str, Any] = {"numRecords": footer.num_rows}
        if complete:
            found |= {"minValues": lows, "maxValues": highs}
        return msgspec.json.encode(found | {"nullCount": nulls}).decode()

    def _add_footer(self, bounds: _Bounds, footer: pq.FileMetaData, leaf: Leaf) -> None:
        for number in range(footer.num_row_groups):
            group = footer.row_group(number)
            found = group.column(leaf.column).statistics
            if found is None or not found.has_null_count:
                bounds.nulls = None
            elif bounds.nulls is not None:
                bounds.nulls += found.null_count
            if (number, leaf.column) in self._long:
                continue
            if found is not None and found.has_min_max:
                bounds.widen(_ordered(found.min_raw, leaf.type), _ordered(found.max_raw, leaf.type))
            elif bounds.nulls is None or found.null_count < group.num_rows:
                bounds.known = False


def _ordered(raw: Any, kind: pa.DataType) -> Any:
    """A bound in the footer as a value that compares as the column's values do."""
    # Above 18 digits a decimal is bytes in two's complement, where -1 would come after 1.
    if pa.types.is_decimal(kind) and isinstance(raw, bytes):
        return int.from_bytes(raw, "big", signed=True)
    return raw


def _see_floats(bounds: _Bounds, values: pa.ChunkedArray) -> None:
    # A sum costs a tenth of is_nan, and NaN in gives NaN out (so does inf - inf: no bounds then).
    if math.isnan(pc.sum(values).as_py()):
        bounds.known = False
    else:
        ends = pc.min_max(values).as_py()
        bounds.widen(ends["min"], ends["max"])


def _leaves(fields: Sequence[pa.Field], path: tuple[str, ...], column: int) -> list[Leaf]:
    leaves: list[Leaf] = []
    for each in fields:
        here = (*path, each.name)
        if pa.types.is_struct(each.type):
            leaves.extend(_leaves(list(each.type), here, column))
        else:
            leaves.append(Leaf(here, each.type, column))
        column += _width(each.type)
    return leaves


def _width(kind: pa.DataType) -> int:
    """How many columns a type takes in a Parquet file."""
    if not pa.types.is_nested(kind):
        return 1
    return sum(_width(kind.field(index).type) for index in range(kind.num_fields))


def _prefixes(path: tuple[str, ...]) -> set[str]:
    return {".".join(path[: length + 1]) for length in range(len(path))}


def _values(rows: pa.Table, path: tuple[str, ...]) -> pa.ChunkedArray:
    values = rows.column(path[0])
    for name in path[1:]:
        # Null where the struct is null, unlike the struct's own child array.
        values = pc.struct_field(values, values.type.get_field_index(name))
    return values


def _put(tree: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    if value is None:
        return
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = value


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _has_bounds(kind: pa.DataType) -> bool:
    binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    return not (binary or pa.types.is_nested(kind))


def _low(raw: Any, kind: pa.DataType) -> Any:
    if pa.types.is_timestamp(kind):
        return _moment(raw // 1000, kind)
    if pa.types.is_floating(kind):
        return _number(raw or -0.0)  # zero has two signs, and the bounds hold both
    if _is_text(kind):
        return raw.decode()[:_PREFIX]
    return _exact(raw, kind)


def _high(raw: Any, kind: pa.DataType) -> Any:
    if pa.types.is_timestamp(kind):
        # In the last millisecond of the year 9999 there is no rounding up; readers add one to what they find.
        return _moment(-(-raw // 1000), kind) or _moment(raw // 1000, kind)
    if pa.types.is_floating(kind):
        return _number(raw or 0.0)
    if _is_text(kind):
        return prefix_above(raw.decode())
    return _exact(raw, kind)


def _number(number: float) -> float | str:
    """A float as Spark writes it: JSON has no infinity."""
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    return number


def _exact(raw: Any, kind: pa.DataType) -> Any:
    if pa.types.is_date32(kind):
        try:
            return (date(1970, 1, 1) + timedelta(days=raw)).isoformat()
        except OverflowError:  # outside the years 1 to 9999
            return None
    if pa.types.is_decimal(kind):
        return msgspec.Raw(decimal_text(raw, kind.scale).encode())
    return raw


def _moment(milliseconds: int, kind: pa.DataType) -> str | None:
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
    return moment.isoformat("T", "milliseconds") + ("" if kind.tz is None else "Z")


def prefix_above(text: str) -> str:
    """A string not less than `text` in the order of code points, and short if there is a short one."""
    if len(text) <= _PREFIX:
        return text
    for index in range(_PREFIX - 1, -1, -1):
        code = ord(text[index]) + 1
        if code == 0xD800:  # surrogates are not characters
            code = 0xE000
        if code <= _LAST_CHARACTER:
            return text[:index] + chr(code)
    return text


def decimal_text(unscaled: int, scale: int) -> str:
    """A decimal number with all its digits and no exponent."""
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    text = f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits
    return f"-{text}" if unscaled < 0 else text
