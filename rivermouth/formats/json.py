"""`json`: an object a record, its fields the columns of a schema, every value fitting exactly.

Good records are read by the block. What the block reader refuses, or must not be shown, is decoded one by
one by `json_convert`, which has the last word on what a right value is. Keys that are not in the schema are
ignored, also when they are there twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from rivermouth.config.types import storage_schema
from rivermouth.formats import rows
from rivermouth.formats.base import NOT_AN_OBJECT, Decoded, Rejects
from rivermouth.formats.json_block import Block, Piece
from rivermouth.formats.json_columns import Rows
from rivermouth.formats.json_convert import struct
from rivermouth.formats.json_text import BadValue, parse, show


class Json:
    """The `json` format. It is made from the types to decode; its `schema` is in the types stored."""

    def __init__(self, schema: pa.Schema) -> None:
        self._decoded = schema
        self._schema = storage_schema(schema)
        self._convert = struct(schema, "an event")
        self._block = Block(schema)

    def __reduce__(self) -> tuple[type[Json], tuple[pa.Schema]]:
        return Json, (self._decoded,)

    @property
    def schema(self) -> pa.Schema:
        """The columns of an event."""
        return self._schema

    def decode(self, records: pa.RecordBatch, *, careful: bool = False) -> Decoded:
        """Decode a batch; see `Format`."""
        values = records.column("value")
        rejects = Rejects()
        rows.reject_nulls(values, rejects)
        present = rows.others(len(values), rejects.rows)
        pieces = [] if careful else self._block.decode(values, present)
        done = np.concatenate([piece.rows for piece in pieces]) if pieces else np.empty(0, np.int64)
        if len(done) < len(present) or not pieces:
            alone = np.setdiff1d(present, done, assume_unique=True)
            pieces.append(self._one_by_one(values, alone, rejects))
            rejects = rows.in_order(rejects)
        return Decoded(_in_order(pieces), rows.kept(len(values), rejects), rejects)

    def _one_by_one(self, values: pa.Array, chosen: Rows, rejects: Rejects) -> Piece:
        good: list[int] = []
        events: list[dict[str, Any]] = []
        for row, value in zip(chosen.tolist(), values.take(pa.array(chosen)).to_pylist(), strict=True):
            try:
                event = parse(value)
                if not isinstance(event, dict):
                    raise BadValue(NOT_AN_OBJECT, f"{show(event)} is not an object")
                events.append(self._convert(event))
                good.append(row)
            except BadValue as bad:
                rejects.add(row, bad.reason, str(bad))
        columns = [pa.array([event[f.name] for event in events], f.type) for f in self._schema]
        return Piece(np.array(good, np.int64), pa.RecordBatch.from_arrays(columns, schema=self._schema))


def _in_order(pieces: list[Piece]) -> pa.RecordBatch:
    """All events in one batch, by the row of their record."""
    filled = [piece for piece in pieces if len(piece.rows)] or pieces[:1]
    if len(filled) == 1:
        return filled[0].events
    order = np.argsort(np.concatenate([piece.rows for piece in filled]))
    return pa.concat_batches([piece.events for piece in filled]).take(pa.array(order))
