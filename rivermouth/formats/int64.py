"""`int64`: eight bytes, big-endian, in one column `value`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.formats import rows
from rivermouth.formats.base import WRONG_LENGTH, Decoded, Rejects


class Int64:
    """The `int64` format."""

    schema = pa.schema([pa.field("value", pa.int64(), nullable=False)])

    def decode(self, records: pa.RecordBatch, *, careful: bool = False) -> Decoded:
        """Decode a batch; see `Format`. It has no slow way: nothing here can fail on hostile input."""
        values = records.column("value")
        rejects = Rejects()
        rows.reject_nulls(values, rejects)
        lengths = pc.binary_length(values)
        wrong = pc.indices_nonzero(pc.not_equal(lengths, 8)).to_pylist()
        for row in wrong:
            rejects.add(row, WRONG_LENGTH, f"the value has {lengths[row].as_py()} bytes, not 8")
        rejects = rows.in_order(rejects)
        kept = rows.kept(len(values), rejects)
        if kept is not None:
            values = values.take(kept)
        numbers = np.frombuffer(rows.data(values), ">i8").astype(np.int64)
        return Decoded(pa.RecordBatch.from_arrays([pa.array(numbers)], schema=self.schema), kept, rejects)
