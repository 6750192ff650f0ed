"""A source of Kafka topics, read by Spark's own connector in exact ranges.

Heads and offsets are asked of the Kafka admin client in the driver's JVM, with the very properties the
reader gets: there is one security dialect, that of the Java client.
"""

from __future__ import annotations

import json
import re
import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from rivermouth.config.model import Model
from rivermouth.config.values import problem
from rivermouth.records import Bounds, Offsets, Partition, number_for
from rivermouth.sources.base import Place, RecordsPerOffset, Scope, Source, located
from rivermouth.sources.kafka_admin import Admin, Topic
from rivermouth.sources.kafka_group import GroupOffsets

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from rivermouth.spark.engine import Engine

_METADATA_SECONDS = 10.0  # how often to look for new topics and partitions
_SPLIT_RECORDS = 50_000  # a range is spread over idle cores when each gets this many records
# Larger fetches than the client's defaults: half the CPU for the broker, and a fifth more records a second.
_FETCH = {
    "max.poll.records": "5000",
    "max.partition.fetch.bytes": str(8 << 20),
    "fetch.max.bytes": str(64 << 20),
}
_OURS = {
    "bootstrap.servers": "bootstrap_servers",
    "isolation.level": "isolation_level",
    "auto.offset.reset": "starting_offsets",
    "key.deserializer": None,
    "value.deserializer": None,
    "enable.auto.commit": None,
}

Start = Literal["earliest", "latest"] | Annotated[int, Field(ge=0)]


class KafkaConfig(Model):
    """Topics of a Kafka cluster."""

    bootstrap_servers: str = Field(
        min_length=1, description="Brokers to start from: `host:port`, comma-separated."
    )
    topics: list[str] | None = Field(default=None, min_length=1, description="The topics to read.")
    topic_pattern: str | None = Field(
        default=None, description="Instead of `topics`: a regular expression that whole topic names match."
    )
    starting_offsets: Literal["earliest", "latest"] | datetime | dict[str, dict[int, Start]] = Field(
        default="earliest",
        description="Where a topic new to the table begins: `earliest`, `latest`, an ISO timestamp, or an "
        "offset for each partition: `{orders: {0: 1200, 1: latest}}`; a partition left out begins at its "
        "beginning.",
        union_mode="left_to_right",
    )
    isolation_level: Literal["read_committed", "read_uncommitted"] = Field(
        default="read_committed", description="Whether records of aborted and open transactions are left out."
    )
    options: dict[str, str] = Field(
        default={},
        description="Properties of the Java client, such as `security.protocol` and `sasl.jaas.config`.",
    )

    @field_validator("starting_offsets", mode="before")
    @classmethod
    def _iso_only(cls, value: Any) -> Any:
        # Also as text: pydantic would take "1700000000" for seconds since 1970.
        if _is_number(value):
            raise ValueError("a bare number is no time; write an ISO timestamp such as 2026-01-31T12:00:00Z")
        return value

    @field_validator("topic_pattern")
    @classmethod
    def _compiles(cls, pattern: str | None) -> str | None:
        try:
            re.compile(pattern or "")
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from error
        return pattern

    @field_validator("options", mode="before")
    @classmethod
    def _plain(cls, options: Any) -> Any:
        if not isinstance(options, dict):
            return options
        plain = {str(k).removeprefix("kafka."): _text(v) for k, v in options.items()}
        for name in plain:
            if name in _OURS:
                key = _OURS[name]
                raise ValueError(
                    f"{name!r} is " + (f"set with the key {key}" if key else "not yours to set here")
                )
        return plain

    @model_validator(mode="after")
    def _one_of(self) -> KafkaConfig:
        if self.topics is None and self.topic_pattern is None:
            raise problem("MissingKey", "topics is missing", hint="list the topics, or give a topic_pattern")
        if self.topics is not None and self.topic_pattern is not None:
            raise problem(
                "ConflictingKeys", "topics and topic_pattern exclude each other", key="topic_pattern"
            )
        return self


class Kafka(Source):
    """Topics of a Kafka cluster."""

    connector: ClassVar[str] = "kafka"
    config_model: ClassVar[type[Model]] = KafkaConfig
    records_per_offset: ClassVar[RecordsPerOffset] = "at most one"  # compaction and transactions leave gaps

    def __init__(self, config: KafkaConfig, scope: Scope, engine: Engine) -> None:
        super().__init__(config, scope, engine)
        self._properties = {"bootstrap.servers": config.bootstrap_servers, **config.options}
        self._group = self._properties.get("group.id", f"rivermouth.{scope.pipeline}.{scope.sink}")
        self._admin = Admin(lambda: engine.jvm, self._properties, config.isolation_level)
        self._group_offsets = GroupOffsets(self._admin, self._group, scope.warn)
        self._topics: dict[str, Topic] = {}
        self._partitions: list[Partition] = []
        self._earliest: Offsets = {}
        self._looked = float("-inf")

    def resolve(self, known: Offsets) -> Offsets:
        partitions = self._look()
        topics = {p.topic for p in known}
        new = [p for p in partitions if p not in known]
        return {
            **{p: known[p] for p in partitions if p in known},
            **self._admin.offsets([p for p in new if p.topic in topics], "earliest"),
            **self._begin([p for p in new if p.topic not in topics]),
        }

    def _begin(self, partitions: list[Partition]) -> Offsets:
        """Where topics that the table does not know begin."""
        start = self.config.starting_offsets
        if isinstance(start, dict):
            # A partition left out begins at its beginning; one of a topic that is elsewhere is not ours.
            rest = {p.topic: dict.fromkeys(self._topics[p.topic].partitions, "earliest") for p in partitions}
            start = {topic: {**places, **start.get(topic, {})} for topic, places in rest.items()}
        found = self._locate(start, partitions, "starting_offsets: ")
        return {p: found[p] for p in partitions}

    def locate(self, place: Place, position: Offsets) -> Offsets:
        return self._locate(place, self._look(), "")

    def _locate(self, place: Place, partitions: list[Partition], about: str) -> Offsets:
        if isinstance(place, str):
            return self._admin.offsets(partitions, place)
        if isinstance(place, datetime):
            moment = place if place.tzinfo else place.replace(tzinfo=timezone.utc)
            # No record that late: what comes next is later, so begin at the head.
            at, heads = self._admin.offsets(partitions, moment), self._admin.offsets(partitions, "latest")
            return {p: at[p] if at[p] >= 0 else heads[p] for p in partitions}
        return located(place, self.bounds({}), about)

    def bounds(self, position: Offsets) -> dict[Partition, Bounds]:
        partitions = self._look()
        heads = self._admin.offsets(partitions, "latest")
        # A reader of uncommitted records may be past the head that an open transaction leaves to others.
        ahead = [p for p in partitions if position.get(p, 0) > heads[p]]
        ends = self._admin.offsets(ahead, "latest", "read_uncommitted")
        heads.update({p: position[p] for p in ahead if position[p] <= ends[p]})
        return {p: Bounds(self._earliest.get(p, 0), heads[p]) for p in partitions}

    def identities(self, *, now: bool = False) -> dict[str, int]:
        if now:
            there = self._admin.identities(self._topics)
        else:
            there = {name: topic.identity for name, topic in self._topics.items()}
        return {name: number_for(identity) for name, identity in there.items()}

    def read(self, start: Offsets, end: Offsets) -> DataFrame:
        cores = self.spark.sparkContext.defaultParallelism
        # A name that stays the same lets Spark keep its consumers from epoch to epoch.
        properties = {**_FETCH, **self._properties, "group.id": self._group}
        reader = (
            self.spark.read.format("kafka")
            .options(**{f"kafka.{name}": value for name, value in properties.items()})
            .option("kafka.isolation.level", self.config.isolation_level)
            .option("assign", json.dumps({t: list(numbers) for t, numbers in _by_topic(end).items()}))
            .option("startingOffsets", json.dumps(_by_topic({p: start[p] for p in end})))
            .option("endingOffsets", json.dumps(_by_topic(end)))
            .option("includeHeaders", "true")
            .option("failOnDataLoss", "true")
        )
        if len(end) < cores and self.waiting(start, end) >= cores * _SPLIT_RECORDS:
            reader = reader.option("minPartitions", str(cores))
        return reader.load().select("key", "value", "topic", "partition", "offset", "timestamp", "headers")

    def committed(self, position: Offsets) -> None:
        self._group_offsets.tell(position)

    def close(self) -> None:
        self._group_offsets.close()
        self._admin.close()

    def _look(self) -> list[Partition]:
        """The partitions there are, looked up anew every few seconds."""
        if time.monotonic() - self._looked < _METADATA_SECONDS:
            return self._partitions
        self._topics = self._admin.topics(self._names())
        self._partitions = sorted(
            Partition(name, number) for name, topic in self._topics.items() for number in topic.partitions
        )
        self._earliest = self._admin.offsets(self._partitions, "earliest")
        self._looked = time.monotonic()
        return self._partitions

    def _names(self) -> list[str]:
        there = self._admin.topic_names() if self.config.topics is None else self.config.topics
        return [name for name in there if self.expects(name)]

    def expects(self, topic: str) -> bool:
        named = self.config.topics
        wanted = re.fullmatch(self.config.topic_pattern, topic) if named is None else topic in named
        return bool(wanted) and self.scope.takes(topic)


def _text(value: Any) -> Any:
    """A number or truth value of YAML, as the Java client wants it."""
    return json.dumps(value) if isinstance(value, (bool, int, float)) else value


def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return False
        return True
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _by_topic(offsets: Offsets) -> dict[str, dict[int, int]]:
    """Offsets in the shape of Spark's JSON."""
    topics: dict[str, dict[int, int]] = {}
    for partition, offset in offsets.items():
        topics.setdefault(partition.topic, {})[partition.number] = offset
    return topics
