"""Many JSON records at once, through pyarrow's block reader.

The reader raises for a whole block, so the bad records are found and left out, and the rest is read
again. What is left out is not lost: the caller decodes those records one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from rivermouth.config.types import storage_schema
from rivermouth.formats import json_suspects, rows
from rivermouth.formats.json_columns import Rows, read_type, store_columns
from rivermouth.formats.json_maps import MapColumns, has_map

_BLANKS = " \t\r\n"
_SLICE = 256
_MAX_BYTES = 1 << 30  # the reader counts in 32 bits


class Piece(NamedTuple):
    """Events and the rows of the records they came from."""

    rows: Rows
    events: pa.RecordBatch


class Block:
    """Decodes the records that can be decoded together, into the stored types of `schema`."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = storage_schema(schema)
        self._fields = [field for field in schema if not has_map(field.type)]
        self._read_schema = pa.schema([(field.name, read_type(field.type)) for field in self._fields])
        maps = [field for field in schema if has_map(field.type)]
        self._maps = MapColumns(maps) if maps else None
        self._check = json_suspects.typed_decoder(schema)
        # As long as no key outside of the schema was seen, none can hold a NaN to look for.
        self._unknown_keys = self._maps is not None
        # Bad records come in streaks: after a block that was refused, look for suspects first.
        self._suspicious = False

    def decode(self, values: pa.Array, present: Rows) -> list[Piece]:
        """Decode what can be decoded of the rows `present`; the other rows are left out."""
        if not self._fields or values.nbytes > _MAX_BYTES:
            return []
        chosen = self._presentable(values, present)
        if not self._suspicious and not self._maybe_not_finite(values):
            try:
                return [self._piece(values, chosen)]
            except pa.ArrowInvalid as error:
                if not self._unknown_keys and "unexpected field" in str(error):
                    self._unknown_keys = True
                    return self.decode(values, present)
        return list(self._without_suspects(values, chosen))

    def _without_suspects(self, values: pa.Array, chosen: Rows) -> Iterator[Piece]:
        suspects = json_suspects.find(_take(values, chosen).to_pylist(), self._check)
        chosen = chosen[rows.others(len(chosen), suspects)]
        self._suspicious = bool(suspects)
        try:
            yield self._piece(values, chosen)
            return
        except pa.ArrowInvalid as error:
            if not self._unknown_keys and "unexpected field" in str(error):
                self._unknown_keys = True  # the typed pass has found every NaN
            elif "specified twice" in str(error):
                # The typed pass does not see a key that is there twice; a count of the keys does, mostly.
                counts = pc.count_substring(_take(values, chosen), '":').to_numpy()
                chosen = chosen[counts <= np.median(counts)]
        try:
            yield self._piece(values, chosen)
            return
        except pa.ArrowInvalid:
            pass
        for start in range(0, len(chosen), _SLICE):
            try:
                yield self._piece(values, chosen[start : start + _SLICE])
            except pa.ArrowInvalid:
                continue

    def _piece(self, values: pa.Array, chosen: Rows) -> Piece:
        taken = _take(values, chosen)
        arrays = _read(taken, self._read_schema, "ignore" if self._unknown_keys else "error")
        stored, bad = store_columns(arrays, self._fields)
        columns = dict(zip(self._read_schema.names, stored, strict=True))
        if self._maps is not None:
            more, bad_in_maps = self._maps.read(taken)
            columns |= more
            bad = np.union1d(bad, bad_in_maps)
        events = pa.RecordBatch.from_arrays([columns[name] for name in self.schema.names], schema=self.schema)
        if len(bad):
            good = rows.others(len(chosen), bad)
            return Piece(chosen[good], events.take(pa.array(good)))
        return Piece(chosen, events)

    def _maybe_not_finite(self, values: pa.Array) -> bool:
        """Whether an ignored key may hold a NaN or an infinity, which the reader lets pass."""
        if not self._unknown_keys:
            return False
        data = rows.data(values)
        return b"NaN" in data or b"Inf" in data

    def _presentable(self, values: pa.Array, present: Rows) -> Rows:
        """The rows that may be shown to the reader: UTF-8, `{...}`.

        A top-level null would crash it. And if each value begins with `{` and ends with `}`, no two can be
        read as one, because after a `}` that leaves something open a `{` is an error: so as many rows as
        records means one row each.
        """
        taken = _take(values, present)
        good = _is_text(taken)
        taken = taken.filter(good)
        present = present[good.to_numpy(zero_copy_only=False)]
        text = taken.cast(pa.string())
        braced = _braced(text)
        if not pc.all(braced).as_py():
            braced = pc.if_else(braced, True, _braced(pc.ascii_trim(text, _BLANKS)))
        refused = pc.invert(braced)
        if self._maps is not None:
            refused = pc.or_(refused, self._maps.maybe_doubled(text))
        if pc.any(refused).as_py():
            present = present[~refused.to_numpy(zero_copy_only=False)]
        return present


def _read(values: pa.Array, schema: pa.Schema, unknown: str) -> list[pa.Array]:
    """One row a record in the columns of `schema`; raises `pa.ArrowInvalid` if any record is bad."""
    if not len(values):
        return [pa.array([], field.type) for field in schema]
    lines = pc.binary_join_element_wise(values, b"", b"\n").buffers()[2]
    table = pj.read_json(
        pa.BufferReader(lines),
        # In smaller blocks, good records fail as straddling.
        read_options=pj.ReadOptions(use_threads=False, block_size=lines.size + 1),
        parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior=unknown),
    )
    if table.num_rows != len(values):
        raise pa.ArrowInvalid("two objects in one record")
    return [pa.concat_arrays(table.column(name).chunks) for name in schema.names]


def _take(values: pa.Array, chosen: Rows) -> pa.Array:
    return values if len(chosen) == len(values) else values.take(pa.array(chosen))


def _is_text(values: pa.Array) -> pa.Array:
    try:
        values.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([rows.is_utf8(value) for value in values.to_pylist()], pa.bool_())
    return pa.array(np.ones(len(values), np.bool_))


def _braced(text: pa.Array) -> pa.Array:
    return pc.and_(pc.starts_with(text, "{"), pc.ends_with(text, "}"))
