"""The contract of a source, on one screen. A new source is one file in this folder.

A source is opened once per sink. Its offsets are whole numbers per partition, they only grow, and the
records between two offsets never change: that is all that exactly-once asks of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import pyarrow as pa

from rivermouth.config.model import Model

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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


@dataclass(frozen=True)
class Scope:
    """Whose source this is: a sink of a pipeline, the topics it takes, the table it feeds."""

    pipeline: str
    sink: str
    table_uri: str
    topics: tuple[str, ...] | None = None  # None: every topic of the source
    topic_pattern: str | None = None
    batch_size: int = 10_000
    max_batch_size: int = 1_000_000

    def takes(self, topic: str) -> bool:
        """Whether the sink takes this topic."""
        import re

        if self.topics is not None:
            return topic in self.topics
        if self.topic_pattern is not None:
            return re.fullmatch(self.topic_pattern, topic) is not None
        return True


class Source(ABC):
    """Reads records by exact offset range."""

    connector: ClassVar[str]  # its name in the config
    config_model: ClassVar[type[Model]]  # its keys: validation, defaults, docs, JSON Schema

    exact: ClassVar[bool] = True
    """Whether every offset of a range is a record, so that `read` must equal `end - start`."""

    @abstractmethod
    def resolve(self, known: Offsets) -> Offsets:
        """The offset to begin at, for every partition there is now.

        `known` is what the table remembers: a known partition goes on there; a new partition of a
        known topic begins at its beginning; a new topic begins at the configured start.
        """

    @abstractmethod
    def bounds(self, position: Offsets) -> dict[Partition, Bounds]:
        """Earliest offset and head of every partition there is now, for a reader at `position`."""

    @abstractmethod
    def read(self, spark: SparkSession, start: Offsets, end: Offsets) -> DataFrame:
        """The records from `start` to before `end`, as a DataFrame of `RECORD_DDL`."""

    def waiting(self, start: Offsets, end: Offsets) -> int:
        """About how many records lie between; where offsets do not count records, an estimate."""
        return sum(end[p] - start.get(p, 0) for p in end)

    def close(self) -> None:
        """Release what the source holds. Called once, from the sink's own thread."""
