"""What a record is, and how its place in a source is told. Everything else is built on these words."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import pyarrow as pa

# What every source yields, and every format takes.
RECORD_SCHEMA = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)
RECORD_DDL = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "headers array<struct<key: string, value: binary>>"
)


class Partition(NamedTuple):
    """A part of a source with offsets of its own."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.number}"


Offsets = dict[Partition, int]
"""The next offset to read, per partition."""


class Bounds(NamedTuple):
    """What a partition holds: the first offset that can be read, and the one after the last."""

    earliest: int
    head: int


def number_for(name: str) -> int:
    """A whole number for a name, as the version of a Delta `txn` action can hold it; never 0."""
    return (int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> 1) or 1
