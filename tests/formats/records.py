"""Batches of records for the tests of formats."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

import pyarrow as pa

from rivermouth.records import RECORD_SCHEMA

Headers = list[tuple[str, bytes | None]]
MOMENT = dt.datetime(2024, 1, 15, 10, 30, tzinfo=dt.timezone.utc)


def batch(
    values: Sequence[bytes | None],
    keys: Sequence[bytes | None] | None = None,
    headers: Sequence[Headers | None] | None = None,
) -> pa.RecordBatch:
    """Records with these values, as a source yields them."""
    count = len(values)
    columns = {
        "key": keys or [None] * count,
        "value": values,
        "topic": ["orders"] * count,
        "partition": [0] * count,
        "offset": list(range(count)),
        "timestamp": [MOMENT] * count,
        "headers": [
            None if pairs is None else [{"key": k, "value": v} for k, v in pairs]
            for pairs in headers or [None] * count
        ],
    }
    return pa.RecordBatch.from_arrays(
        [pa.array(columns[field.name], field.type) for field in RECORD_SCHEMA], schema=RECORD_SCHEMA
    )
