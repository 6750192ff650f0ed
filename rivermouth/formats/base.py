"""The contract of a format, on one screen: records in, events and rejects out, all of it Arrow."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

# Why a record could not become an event. The names are stable: they stand in the dead-letter
# table, in metrics and in logs.
INVALID_JSON = "InvalidJson"  # broken syntax: truncated, trailing garbage, two objects, NaN
INVALID_ENCODING = "InvalidEncoding"  # the bytes are not UTF-8
NOT_AN_OBJECT = "NotAnObject"  # valid JSON, but not {...}
DUPLICATE_KEY = "DuplicateKey"  # the same key twice in one object
WRONG_TYPE = "WrongType"  # a value does not fit its column: overflow, 1.5 for an integer, ...
MISSING_FIELD = "MissingField"  # a required field is absent or null
WRONG_LENGTH = "WrongLength"  # int64: not 8 bytes
NULL_VALUE = "NullValue"  # no value at all (a Kafka tombstone)

REASONS = (
    INVALID_JSON,
    INVALID_ENCODING,
    NOT_AN_OBJECT,
    DUPLICATE_KEY,
    WRONG_TYPE,
    MISSING_FIELD,
    WRONG_LENGTH,
    NULL_VALUE,
)


@dataclass
class Rejects:
    """The rows of a batch that could not become events, in ascending order, each with a reason."""

    rows: list[int] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    def add(self, row: int, reason: str, message: str) -> None:
        """Note one more; call in ascending order of rows."""
        self.rows.append(row)
        self.reasons.append(reason)
        self.messages.append(message)

    def __len__(self) -> int:
        return len(self.rows)


@dataclass
class Decoded:
    """What became of a batch of records.

    `events` has one row for each good record, in order, in the format's schema.
    `kept` holds those records' row numbers in the batch, or None when every record was good.
    """

    events: pa.RecordBatch
    kept: pa.Array | None
    rejects: Rejects


class Format(Protocol):
    """Turns a batch of records (see `records.RECORD_SCHEMA`) into events.

    A format is built from plain values, so that it travels to the workers by pickle.
    """

    @property
    def schema(self) -> pa.Schema:
        """The columns of an event, in the types the table stores, with nullability."""

    def decode(self, records: pa.RecordBatch, *, careful: bool = False) -> Decoded:
        """Decode a batch. `careful` goes record by record: slower, and survives any input."""
