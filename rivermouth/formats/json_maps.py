"""Columns with maps, which the block reader cannot read: their text is cut out and converted by itself."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.config.types import storage_type
from rivermouth.formats.base import MISSING_FIELD
from rivermouth.formats.json_columns import Rows
from rivermouth.formats.json_convert import Convert, converter
from rivermouth.formats.json_text import BadValue, parse


def has_map(type_: pa.DataType) -> bool:
    """Whether there is a map in the type."""
    if pa.types.is_map(type_):
        return True
    return pa.types.is_nested(type_) and any(has_map(type_.field(i).type) for i in range(type_.num_fields))


class MapColumns:
    """Decodes some columns of a batch, value by value."""

    def __init__(self, fields: Sequence[pa.Field]) -> None:
        self._fields = [(field, f"f{i}", converter(field.type)) for i, field in enumerate(fields)]
        members = [(attribute, msgspec.Raw, msgspec.Raw(b"null")) for _, attribute, _ in self._fields]
        names = {attribute: field.name for field, attribute, _ in self._fields}
        self._decode = msgspec.json.Decoder(msgspec.defstruct("Maps", members, rename=names)).decode

    def read(self, values: list[bytes]) -> tuple[dict[str, pa.Array], Rows]:
        """The stored columns by name, and the rows that are bad."""
        columns: list[list[Any]] = [[] for _ in self._fields]
        bad = []
        for row, value in enumerate(values):
            try:
                event = self._decode(value)
                found = [
                    _value(getattr(event, name), field, convert) for field, name, convert in self._fields
                ]
            except (msgspec.MsgspecError, RecursionError, BadValue):
                bad.append(row)
                found = [None] * len(columns)
            for column, inner in zip(columns, found, strict=True):
                column.append(inner)
        arrays = {
            field.name: pa.array(column, storage_type(field.type))
            for (field, _, _), column in zip(self._fields, columns, strict=True)
        }
        return arrays, np.array(bad, np.int64)

    def maybe_doubled(self, values: pa.Array) -> pa.Array:
        r"""Whether one of the columns may be there twice, which the typed pass does not see.

        Written out twice, or at least once with escapes: \u may stand for anything, other escapes only for
        what is no letter, digit or underscore.
        """
        plain = all(re.fullmatch(r"\w+", field.name) for field, _, _ in self._fields)
        doubled = pc.match_substring(values, b"\\u" if plain else b"\\")
        for field, _, _ in self._fields:
            key = json.dumps(field.name, ensure_ascii=False).encode()
            doubled = pc.or_(doubled, pc.greater(pc.count_substring(values, key), 1))
        return doubled


def _value(raw: msgspec.Raw, field: pa.Field, convert: Convert) -> Any:
    value = parse(bytes(raw))
    if value is not None:
        return convert(value)
    if not field.nullable:
        raise BadValue(MISSING_FIELD, "a required field is missing")
    return None
