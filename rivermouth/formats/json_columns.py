"""Columns as the block reader gives them, turned into columns as the table stores them.

The reader is strict but not strict enough: it takes NaN and infinite floats, wraps a decimal that is too
large, moves a timestamp without a zone, and cannot read dates or base64. So the types it is asked for
differ from the column's, and `Column` turns what was read into what is stored, noting the bad rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.config.types import storage_type
from rivermouth.formats.json_convert import MAX_TIMESTAMP, MIN_TIMESTAMP, base64_bytes

Rows = npt.NDArray[np.int64]

# A day of the calendar, exactly: 28 days in any month, 29 and 30 but for February, 31, leap days.
_LEAP = r"(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_DAY = (
    r"(?:\d{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)|"
    + _LEAP
    + "-02-29)"
)
_TIME = r"(?:[01]\d|2[0-3])(?::[0-5]\d(?::[0-5]\d(?:\.\d{1,6})?)?)?"
_OFFSET = r"(?:Z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)"
_NAIVE = f"^{_DAY}(?:[T ]{_TIME})?$"
_ZONED = f"^{_DAY}[T ]{_TIME}{_OFFSET}$"
_NO_ZONE = pa.timestamp("us")
_FIRST_DAY, _LAST_DAY = MIN_TIMESTAMP // 86_400_000_000, MAX_TIMESTAMP // 86_400_000_000


def read_type(type_: pa.DataType) -> pa.DataType:
    """The type to ask of the block reader for a column of this type."""
    if pa.types.is_temporal(type_) or pa.types.is_binary(type_):
        return pa.string()
    if pa.types.is_decimal(type_):
        # It counts digits before it scales: in 128 bits a number that is too large would wrap.
        return pa.decimal256(type_.precision, type_.scale)
    if pa.types.is_struct(type_):
        inner = (type_.field(i) for i in range(type_.num_fields))
        return pa.struct([pa.field(f.name, read_type(f.type)) for f in inner])
    if pa.types.is_list(type_):
        return pa.list_(pa.field("element", read_type(type_.value_type)))
    return type_


class Column:
    """Turns one column as it was read into the column as it is stored, and notes the bad rows."""

    def __init__(self) -> None:
        self.bad: list[Rows] = []

    def store(self, array: pa.Array, field: pa.Field, rows: Rows | None = None) -> pa.Array:
        """The stored array; `rows` gives the record of each element, where they are not the same."""
        if array.null_count and not field.nullable:
            self._note(array.is_null(), rows)
        return self._stored(array, field.type, rows)

    def _note(self, mask: pa.Array, rows: Rows | None) -> None:
        found = np.flatnonzero(mask.fill_null(False).to_numpy(zero_copy_only=False))
        self.bad.append(found if rows is None else rows[found])

    def _stored(self, array: pa.Array, type_: pa.DataType, rows: Rows | None) -> pa.Array:
        if pa.types.is_floating(type_):
            finite = pc.is_finite(array)
            if pc.all(finite).as_py() is False:
                self._note(pc.invert(finite), rows)
            return array
        if pa.types.is_decimal(type_):
            return self._decimal(array, type_, rows)
        if pa.types.is_date(type_):
            return self._within(self._date(array, rows), pa.int32(), _FIRST_DAY, _LAST_DAY, rows)
        if pa.types.is_timestamp(type_):
            moments = self._timestamp(array, type_, rows)
            return self._within(moments, pa.int64(), MIN_TIMESTAMP, MAX_TIMESTAMP, rows)
        if pa.types.is_binary(type_):
            return self._binary(array, rows)
        if pa.types.is_struct(type_):
            return self._struct(array, type_, rows)
        if pa.types.is_list(type_):
            return self._list(array, type_, rows)
        return array.cast(storage_type(type_))

    def _within(self, array: pa.Array, raw: pa.DataType, low: int, high: int, rows: Rows | None) -> pa.Array:
        bounds = pc.min_max(array.view(raw))
        if bounds["min"].is_valid and (bounds["min"].as_py() < low or bounds["max"].as_py() > high):
            numbers = array.view(raw)
            self._note(pc.or_(pc.less(numbers, low), pc.greater(numbers, high)), rows)
        return array

    def _decimal(self, array: pa.Array, type_: pa.DataType, rows: Rows | None) -> pa.Array:
        try:
            return array.cast(type_)
        except pa.ArrowInvalid:
            limit = 10 ** (type_.precision - type_.scale)
            good = pa.array([v is None or abs(v) < limit for v in array.to_pylist()], pa.bool_())
            return self._only(good, array, rows).cast(type_)

    def _only(self, good: pa.Array, array: pa.Array, rows: Rows | None) -> pa.Array:
        """Note what is not good, and leave it out, so that the rest can be cast."""
        self._note(pc.invert(good), rows)
        return pc.if_else(good, array, pa.scalar(None, array.type))

    def _date(self, array: pa.Array, rows: Rows | None) -> pa.Array:
        try:
            return array.cast(pa.date32())
        except pa.ArrowInvalid:
            good = pc.match_substring_regex(array, f"^{_DAY}$")
            return self._only(good, array, rows).cast(pa.date32())

    def _timestamp(self, array: pa.Array, type_: pa.DataType, rows: Rows | None) -> pa.Array:
        try:
            return array.cast(type_)
        except pa.ArrowInvalid:
            pass
        # Some have no offset, or are bad.
        nothing = pa.scalar(None, pa.string())
        if type_.tz is None:
            return self._only(pc.match_substring_regex(array, _NAIVE), array, rows).cast(type_)
        zoned = pc.match_substring_regex(array, _ZONED).fill_null(True)
        places = np.flatnonzero(~zoned.to_numpy(zero_copy_only=False))
        rest = array.take(pa.array(places))
        good = pc.match_substring_regex(rest, _NAIVE)
        naive = self._only(good, rest, places if rows is None else rows[places]).cast(_NO_ZONE).view(type_)
        return pc.replace_with_mask(pc.if_else(zoned, array, nothing).cast(type_), pc.invert(zoned), naive)

    def _binary(self, array: pa.Array, rows: Rows | None) -> pa.Array:
        data = [None if text is None else base64_bytes(text) for text in array.to_pylist()]
        stored = pa.array(data, pa.binary())
        if stored.null_count != array.null_count:
            self._note(pc.and_(stored.is_null(), array.is_valid()), rows)
        return stored

    def _struct(self, array: pa.Array, type_: pa.DataType, rows: Rows | None) -> pa.Array:
        stored = storage_type(type_)
        mask = array.is_null() if array.null_count else None
        if mask is not None:
            # What is missing inside of a missing struct is nobody's fault.
            here = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
            inner_rows = here if rows is None else rows[here]
        children = []
        for i in range(type_.num_fields):
            child = array.field(i)
            if mask is None:
                children.append(self.store(child, type_.field(i), rows))
            else:
                present = self.store(child.take(pa.array(here)), type_.field(i), inner_rows)
                back = np.cumsum(array.is_valid().to_numpy(zero_copy_only=False)) - 1
                places = pa.array(back, mask=mask.to_numpy(zero_copy_only=False))
                children.append(present.take(places))
        fields = [stored.field(i) for i in range(stored.num_fields)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=mask)

    def _list(self, array: pa.Array, type_: pa.DataType, rows: Rows | None) -> pa.Array:
        parents = pc.list_parent_indices(array).to_numpy(zero_copy_only=False)
        elements = self.store(array.flatten(), type_.value_field, parents if rows is None else rows[parents])
        lengths = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        mask = array.is_null() if array.null_count else None
        return pa.ListArray.from_arrays(pa.array(offsets), elements, type=storage_type(type_), mask=mask)


def store_columns(arrays: Sequence[pa.Array], fields: Sequence[pa.Field]) -> tuple[list[pa.Array], Rows]:
    """The stored columns, and the rows that are bad in any of them, ascending."""
    column = Column()
    stored = [column.store(array, field) for array, field in zip(arrays, fields, strict=True)]
    bad: Rows = np.unique(np.concatenate(column.bad)) if column.bad else np.empty(0, np.int64)
    return stored, bad
