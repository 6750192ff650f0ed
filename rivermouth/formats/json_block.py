"""Many JSON records at once, through pyarrow's block reader.

The reader raises for a whole block, so the bad records are found and left out, and the rest is read
again. What is left out is not lost: the caller decodes those records one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import compress
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from rivermouth.config.types import storage_schema
from rivermouth.formats import json_suspects, rows
from rivermouth.formats.json_columns import Rows, read_type, store_columns
from rivermouth.formats.json_maps import MapColumns, has_map

_BLANKS = b" \t\r\n"
_UNKNOWN_KEY = "unexpected field"
_PROBE = 512
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
        self._decoded = schema
        self._check, self._times = json_suspects.typed_decoder(schema), True
        # As long as no key outside of the schema was seen, none can hold a NaN to look for.
        self._unknown_keys = self._maps is not None
        # Bad records come in streaks: after a block that was refused, look for suspects first.
        self._suspicious = False
        self._doubled_keys = False

    def decode(self, values: pa.Array, present: Rows) -> list[Piece]:
        """Decode what can be decoded of the rows `present`; the other rows are left out."""
        if not self._fields or values.nbytes > _MAX_BYTES:
            return []
        chosen = self._presentable(values, present)
        if not self._suspicious and not self._maybe_not_finite(values):
            taken = values if len(chosen) == len(values) else values.take(pa.array(chosen))
            try:
                if len(taken) > 8 * _PROBE:
                    # A wrong value is only noticed when the whole block is parsed; mostly, a few tell.
                    self._read(taken.slice(0, _PROBE))
                return [self._piece(chosen, taken)]
            except pa.ArrowInvalid as error:
                if not self._unknown_keys and _UNKNOWN_KEY in str(error):
                    self._unknown_keys = True
                    return self.decode(values, present)
        return list(self._without_suspects(values, chosen))

    def _without_suspects(self, values: pa.Array, chosen: Rows) -> Iterator[Piece]:
        listed = values.to_pylist()
        good = _pick(listed, chosen)
        suspects = json_suspects.find(good, self._check)
        if self._times and 8 * len(suspects) > len(good):
            # So many are hardly bad: their timestamps may be of a form that this check does not know.
            self._times, self._check = False, json_suspects.typed_decoder(self._decoded, times=False)
            suspects = json_suspects.find(good, self._check)
        self._suspicious = bool(suspects)
        chosen = chosen[rows.others(len(chosen), suspects)]
        for _ in range(3):
            good = _pick(listed, chosen)
            if self._doubled_keys:
                suspects = json_suspects.find_doubled_keys(good)
                self._doubled_keys = bool(suspects)
                self._suspicious |= self._doubled_keys
                chosen = chosen[rows.others(len(chosen), suspects)]
                good = _pick(listed, chosen)
            try:
                yield self._piece(chosen, good)
                return
            except pa.ArrowInvalid as error:
                if not self._unknown_keys and _UNKNOWN_KEY in str(error):
                    self._unknown_keys = True  # the typed pass has found every NaN
                elif not self._doubled_keys and "specified twice" in str(error):
                    self._doubled_keys = True
                else:
                    break
        for start in range(0, len(chosen), _SLICE):
            part = chosen[start : start + _SLICE]
            try:
                yield self._piece(part, good[start : start + _SLICE])
            except pa.ArrowInvalid:
                continue

    def _piece(self, chosen: Rows, values: pa.Array | list[bytes]) -> Piece:
        arrays = self._read(values)
        stored, bad = store_columns(arrays, self._fields)
        columns = dict(zip(self._read_schema.names, stored, strict=True))
        if self._maps is not None:
            more, bad_in_maps = self._maps.read(values if isinstance(values, list) else values.to_pylist())
            columns |= more
            bad = np.union1d(bad, bad_in_maps)
        events = pa.RecordBatch.from_arrays([columns[name] for name in self.schema.names], schema=self.schema)
        if len(bad):
            good = rows.others(len(chosen), bad)
            return Piece(chosen[good], events.take(pa.array(good)))
        return Piece(chosen, events)

    def _read(self, values: pa.Array | list[bytes]) -> list[pa.Array]:
        return _read(values, self._read_schema, "ignore" if self._unknown_keys else "error")

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
        good = np.zeros(len(values), np.bool_)
        good[present] = True
        braced = pc.and_(pc.starts_with(values, b"{"), pc.ends_with(values, b"}"))
        for row in np.flatnonzero(good & ~_mask(braced)).tolist():
            bare = values[row].as_py().strip(_BLANKS)
            good[row] = bare.startswith(b"{") and bare.endswith(b"}")
        good[rows.not_utf8(values)] = False
        if self._maps is not None:
            good &= ~_mask(self._maps.maybe_doubled(values))
        return np.flatnonzero(good)


def _pick(values: list[bytes], chosen: Rows) -> list[bytes]:
    mask = np.zeros(len(values), np.bool_)
    mask[chosen] = True
    return list(compress(values, mask.tolist()))


def _mask(array: pa.Array) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = array.fill_null(False).to_numpy(zero_copy_only=False)
    return found


def _read(values: pa.Array | list[bytes], schema: pa.Schema, unknown: str) -> list[pa.Array]:
    """One row a record in the columns of `schema`; raises `pa.ArrowInvalid` if any record is bad."""
    if not len(values):
        return [pa.array([], field.type) for field in schema]
    if isinstance(values, list):
        lines = pa.py_buffer(b"\n".join([*values, b""]))
    else:
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
