"""The contract of a source, on one screen. A new source is one file in this folder.

A source is opened once per sink. Its offsets are whole numbers per partition, they only grow, and the
records between two offsets never change: that is all that exactly-once asks of it.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from rivermouth.config.model import Model
from rivermouth.errors import SourceInvalid
from rivermouth.records import Bounds, Offsets, Partition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rivermouth.spark.engine import Engine


Place = Literal["earliest", "latest"] | datetime | dict[str, dict[int, Literal["earliest", "latest"] | int]]
"""A place in a source: an end of it, a moment, or something for each partition named."""

RecordsPerOffset = Literal["one", "at most one", "unknown"]


@dataclass(frozen=True)
class Scope:
    """Whose source this is: a sink of a pipeline, the topics it takes, the table it feeds."""

    pipeline: str
    sink: str
    table_uri: str
    topics: tuple[str, ...] | None = None  # None: every topic of the source
    topic_pattern: str | None = None
    max_batch_size: int = 1_000_000
    warn: Callable[[str, str], None] = lambda code, message: None  # tells the operator

    def takes(self, topic: str) -> bool:
        """Whether the sink takes this topic."""
        if self.topics is not None:
            return topic in self.topics
        if self.topic_pattern is not None:
            return re.fullmatch(self.topic_pattern, topic) is not None
        return True


class Source(ABC):
    """Reads records by exact offset range."""

    connector: ClassVar[str]  # its name in the config
    config_model: ClassVar[type[Model]]  # its keys: validation, defaults, docs, JSON Schema

    def __init__(self, config: Any, scope: Scope, engine: Engine) -> None:
        """Open the source for one sink; `config` is an instance of `config_model`."""
        self.config = config
        self.scope = scope
        self.engine = engine

    @property
    def spark(self) -> SparkSession:
        """The session to read with. Only `read` may ask for it: an operator's tools have none."""
        return self.engine.spark

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
    def read(self, start: Offsets, end: Offsets) -> DataFrame:
        """The records from `start` to before `end`, as a DataFrame of `records.RECORD_DDL`."""

    # What follows has an answer that suits most sources.

    records_per_offset: ClassVar[RecordsPerOffset] = "unknown"
    """How many records an offset stands for: what was read must agree with the length of its range."""

    def identities(self, *, now: bool = False) -> dict[str, int]:
        """A number per topic that changes when the topic is deleted and created again.

        `now` asks for what is so at this moment, and not at the last look.
        """
        return {}

    def expects(self, topic: str) -> bool:
        """Whether a topic that the table knows should be there: one that is not is a loss."""
        return False

    def locate(self, place: Place, position: Offsets) -> Offsets:
        """The offsets of a place, for every partition it speaks of; for `rivermouth offsets` and `replay`."""
        bounds = self.bounds(position)
        if isinstance(place, str):
            return {p: b.earliest if place == "earliest" else b.head for p, b in bounds.items()}
        if isinstance(place, datetime):
            raise SourceInvalid(
                f"a source of kind {self.connector} does not know its records by time",
                hint="give earliest, latest or an offset for each partition",
            )
        return located(place, bounds)

    def committed(self, position: Offsets) -> None:
        """Hear what is in the table now, for those who watch the source. Never read back."""

    def waiting(self, start: Offsets, end: Offsets) -> int:
        """About how many records lie between; where offsets do not count records, an estimate."""
        return sum(end[p] - start[p] for p in end)

    def most(self, max_batch_size: int) -> int:
        """How many offsets an epoch of at most `max_batch_size` records may take."""
        return max_batch_size

    def close(self) -> None:
        """Release what the source holds. Called once, from the sink's own thread."""


def located(
    place: Mapping[str, Mapping[int, Literal["earliest", "latest"] | int]],
    bounds: Mapping[Partition, Bounds],
    about: str = "",
) -> Offsets:
    """The offsets of partitions named one by one; one not there, or without that offset, is an error."""
    offsets: Offsets = {}
    wrong = []
    for topic, numbers in place.items():
        for number, at in numbers.items():
            partition = Partition(topic, number)
            bound = bounds.get(partition)
            if bound is None:
                wrong.append(f"there is no {partition}")
                continue
            offset = at if isinstance(at, int) else bound.earliest if at == "earliest" else bound.head
            offsets[partition] = offset
            if not bound.earliest <= offset <= bound.head:
                wrong.append(f"{partition} has {bound.earliest} to {bound.head}, not {offset}")
    if wrong:
        raise SourceInvalid(
            f"{about}{'; '.join(wrong)}",
            hint="give an offset of that range, or earliest or latest; nothing was pinned",
        )
    return offsets
