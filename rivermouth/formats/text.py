"""`string`: the value as text, in one column `data`."""

from __future__ import annotations

import pyarrow as pa

from rivermouth.formats import rows
from rivermouth.formats.base import INVALID_ENCODING, Decoded, Rejects


class Text:
    """The `string` format."""

    schema = pa.schema([pa.field("data", pa.string(), nullable=False)])

    def decode(self, records: pa.RecordBatch, *, careful: bool = False) -> Decoded:
        """Decode a batch; see `Format`. It has no slow way: nothing here can fail on hostile input."""
        values = records.column("value")
        rejects = Rejects()
        rows.reject_nulls(values, rejects)
        for row in rows.not_utf8(values):
            rejects.add(row, INVALID_ENCODING, rows.encoding_error(values[row].as_py()))
        rejects = rows.in_order(rejects)
        kept = rows.kept(len(values), rejects)
        text = (values if kept is None else values.take(kept)).cast(pa.string())
        return Decoded(pa.RecordBatch.from_arrays([text], schema=self.schema), kept, rejects)
