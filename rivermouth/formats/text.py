"""`string`: the value as text, in one column `data`."""

from __future__ import annotations

import pyarrow as pa

from rivermouth.formats import rows
from rivermouth.formats.base import INVALID_ENCODING, Decoded, Rejects


class Text:
    """The `string` format."""

    schema = pa.schema([pa.field("data", pa.string(), nullable=False)])

    def decode(self, records: pa.RecordBatch, *, careful: bool = False) -> Decoded:  # noqa: ARG002
        """Decode a batch; see `Format`. It has no slow way: nothing here can fail on hostile input."""
        values = records.column("value")
        rejects = Rejects()
        rows.reject_nulls(values, rejects)
        rejects = reject_non_utf8(values, rejects)
        kept = rows.kept(len(values), rejects)
        text = (values if kept is None else values.take(kept)).cast(pa.string())
        return Decoded(pa.RecordBatch.from_arrays([text], schema=self.schema), kept, rejects)


def reject_non_utf8(values: pa.Array, rejects: Rejects) -> Rejects:
    """Reject what is not text, too; rejects in order."""
    try:
        values.cast(pa.string())
    except pa.ArrowInvalid:
        for row, value in enumerate(values.to_pylist()):
            error = None if value is None else rows.encoding_error(value)
            if error is not None:
                rejects.add(row, INVALID_ENCODING, error)
        return rows.in_order(rejects)
    return rejects
