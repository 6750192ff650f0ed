"""A source of Kafka topics, read by Spark's own connector in exact ranges.

Heads and offsets are asked of the Kafka admin client in the driver's JVM, with the very properties the
reader gets: there is one security dialect, that of the Java client.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from rivermouth.config.model import Model
from rivermouth.config.values import problem
from rivermouth.errors import SourceInvalid, SourceUnavailable
from rivermouth.records import Bounds, Offsets, Partition
from rivermouth.sources.base import Scope, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_METADATA_SECONDS = 10.0  # how often to look for new topics and partitions
_SPLIT_RECORDS = 50_000  # a range is spread over idle cores when each gets this many records
# Larger fetches than the client's defaults: half the CPU for the broker, and a fifth more records a second.
_FETCH = {
    "max.poll.records": "5000",
    "max.partition.fetch.bytes": str(8 << 20),
    "fetch.max.bytes": str(64 << 20),
}
_PLACES = ("earliest", "latest")
_OURS = {
    "bootstrap.servers": "bootstrap_servers",
    "isolation.level": "isolation_level",
    "auto.offset.reset": "starting_offsets",
    "key.deserializer": None,
    "value.deserializer": None,
    "enable.auto.commit": None,
}

Place = Literal["earliest", "latest"] | Annotated[int, Field(ge=0)]


class KafkaConfig(Model):
    """Topics of a Kafka cluster."""

    bootstrap_servers: str = Field(
        min_length=1, description="Brokers to start from: `host:port`, comma-separated."
    )
    topics: list[str] | None = Field(default=None, min_length=1, description="The topics to read.")
    topic_pattern: str | None = Field(
        default=None, description="Instead of `topics`: a regular expression that whole topic names match."
    )
    starting_offsets: Literal["earliest", "latest"] | datetime | dict[str, dict[int, Place]] = Field(
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
        if isinstance(value, (int, float)) and not isinstance(value, bool):
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

    def __init__(self, config: KafkaConfig, scope: Scope, spark: SparkSession) -> None:
        super().__init__(config, scope, spark)
        self._jvm: Any = spark._jvm
        self._admin: Any = None
        self._partitions: list[Partition] = []
        self._topic_ids: dict[str, str] = {}
        self._cluster = ""
        self._looked = float("-inf")
        self._earliest: Offsets = {}

    def resolve(self, known: Offsets) -> Offsets:
        partitions = self._look()
        topics = {p.topic for p in known}
        new = [p for p in partitions if p not in known]
        return {
            **{p: known[p] for p in partitions if p in known},
            **self._list([p for p in new if p.topic in topics], "earliest"),
            **self._begin([p for p in new if p.topic not in topics]),
        }

    def _begin(self, partitions: list[Partition]) -> Offsets:
        start = self.config.starting_offsets
        if isinstance(start, str):
            return self._list(partitions, start)
        if isinstance(start, datetime):
            moment = start if start.tzinfo else start.replace(tzinfo=timezone.utc)
            # No record that late: what comes next is later, so begin at the head.
            at, heads = self._list(partitions, moment), self._list(partitions, "latest")
            return {p: at[p] if at[p] >= 0 else heads[p] for p in partitions}
        places = {p: start.get(p.topic, {}).get(p.number, "earliest") for p in partitions}
        named = {Partition(t, n) for t, numbers in start.items() for n in numbers if self.scope.takes(t)}
        if missing := sorted(p for p in named if p.topic in self._topic_ids and p not in self._partitions):
            raise SourceInvalid(
                f"starting_offsets names partitions that do not exist: {', '.join(map(str, missing))}"
            )
        offsets = {p: o for p, o in places.items() if isinstance(o, int)}
        for place in _PLACES:
            offsets.update(self._list([p for p, o in places.items() if o == place], place))
        return offsets

    def bounds(self, position: Offsets) -> dict[Partition, Bounds]:
        partitions = self._look()
        heads = self._list(partitions, "latest")
        return {p: Bounds(self._earliest.get(p, 0), heads[p]) for p in partitions}

    def identities(self) -> dict[str, int]:
        return {topic: _hash(f"{self._cluster}/{topic_id}") for topic, topic_id in self._topic_ids.items()}

    def read(self, start: Offsets, end: Offsets) -> DataFrame:
        cores = self.spark.sparkContext.defaultParallelism
        reader = (
            self.spark.read.format("kafka")
            .options(**{f"kafka.{name}": value for name, value in {**_FETCH, **self._properties()}.items()})
            .option("kafka.isolation.level", self.config.isolation_level)
            # A name that stays the same lets Spark keep its consumers from epoch to epoch.
            .option("kafka.group.id", f"rivermouth.{self.scope.pipeline}.{self.scope.sink}")
            .option("assign", _by_topic({p: p.number for p in end}, list))
            .option("startingOffsets", _by_topic({p: start[p] for p in end}, dict))
            .option("endingOffsets", _by_topic(end, dict))
            .option("includeHeaders", "true")
            .option("failOnDataLoss", "true")
        )
        if len(end) < cores and self.waiting(start, end) >= cores * _SPLIT_RECORDS:
            reader = reader.option("minPartitions", str(cores))
        return reader.load().select("key", "value", "topic", "partition", "offset", "timestamp", "headers")

    def close(self) -> None:
        if self._admin is not None:
            admin, self._admin = self._admin, None
            self._ask(lambda: admin.close(self._jvm.java.time.Duration.ofSeconds(2)))

    # The admin client.

    def _look(self) -> list[Partition]:
        """The partitions there are, looked up anew every few seconds."""
        if time.monotonic() - self._looked < _METADATA_SECONDS:
            return self._partitions
        admin = self._client()
        self._cluster = str(self._ask(lambda: admin.describeCluster().clusterId().get()))
        found = self._ask(lambda: self._describe(self._names(admin)))
        self._topic_ids = {topic: str(d.topicId().toString()) for topic, d in found.items()}
        self._partitions = sorted(
            Partition(topic, part.partition()) for topic, d in found.items() for part in d.partitions()
        )
        self._earliest = self._list(self._partitions, "earliest")
        self._looked = time.monotonic()
        return self._partitions

    def _names(self, admin: Any) -> list[str]:
        if self.config.topics is not None:
            return [t for t in self.config.topics if self.scope.takes(t)]
        pattern = re.compile(self.config.topic_pattern)
        there = [str(name) for name in admin.listTopics().names().get()]
        return [t for t in there if pattern.fullmatch(t) and self.scope.takes(t)]

    def _describe(self, names: list[str]) -> dict[str, Any]:
        answers = self._client().describeTopics(_java_list(self._jvm, names)).topicNameValues()
        return {name: answers.get(name).get() for name in names}

    def _list(self, partitions: Iterable[Partition], at: str | datetime) -> Offsets:
        """The offsets of partitions at a place or a moment; -1 where there is no record that late."""
        wanted = list(partitions)
        if not wanted:
            return {}
        kafka = self._jvm.org.apache.kafka
        kind = kafka.clients.admin.OffsetSpec
        spec = (
            kind.forTimestamp(int(at.timestamp() * 1000))
            if isinstance(at, datetime)
            else (kind.earliest() if at == "earliest" else kind.latest())
        )
        level = getattr(kafka.common.IsolationLevel, self.config.isolation_level.upper())
        question = self._jvm.java.util.HashMap()
        for partition in wanted:
            question.put(kafka.common.TopicPartition(partition.topic, partition.number), spec)
        options = kafka.clients.admin.ListOffsetsOptions(level)
        answer = self._ask(lambda: self._client().listOffsets(question, options).all().get())
        return {
            Partition(str(entry.getKey().topic()), int(entry.getKey().partition())): int(
                entry.getValue().offset()
            )
            for entry in answer.entrySet()
        }

    def _client(self) -> Any:
        if self._admin is None:
            properties = self._jvm.java.util.Properties()
            for name, value in {**self._patience(), **self._properties()}.items():
                properties.setProperty(name, value)
            self._admin = self._ask(
                lambda: self._jvm.org.apache.kafka.clients.admin.AdminClient.create(properties)
            )
        return self._admin

    def _properties(self) -> dict[str, str]:
        return {"bootstrap.servers": self.config.bootstrap_servers, **self.config.options}

    def _patience(self) -> dict[str, str]:
        """Less than Java's own, unless one of the two is set: the client refuses a pair that does not fit."""
        ours = {"default.api.timeout.ms": "15000", "request.timeout.ms": "10000"}
        return {} if ours.keys() & self.config.options.keys() else ours

    def _ask(self, question: Callable[[], Any]) -> Any:
        """Ask the admin client, and turn what it throws into an error that says what to do."""
        from py4j.protocol import Py4JJavaError

        try:
            return question()
        except Py4JJavaError as error:
            raise self._understood(error) from None

    def _understood(self, error: Any) -> Exception:
        cause = error.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        name = str(cause.getClass().getSimpleName())
        told = f"Kafka at {self.config.bootstrap_servers}: {name}: {cause.getMessage()}"
        if name == "UnknownTopicOrPartitionException":
            wanted = ", ".join(self.config.topics or ())
            return SourceUnavailable(
                f"a topic of {wanted} does not exist at {self.config.bootstrap_servers}",
                hint="check the names, or create the topic: it is taken up as soon as it is there",
            )
        if (
            "Authentication" in name
            or "Authorization" in name
            or name in ("ConfigException", "KafkaException")
        ):
            return SourceInvalid(
                told, hint="check the options of the source: security.protocol, sasl.*, ssl.*"
            )
        return SourceUnavailable(told, hint="check bootstrap_servers and that the brokers are up")


def _text(value: Any) -> Any:
    return (
        str(value).lower()
        if isinstance(value, bool)
        else str(value)
        if isinstance(value, (int, float))
        else value
    )


def _hash(text: str) -> int:
    """A number that fits a `txn` action's version."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def _java_list(jvm: Any, items: Iterable[str]) -> Any:
    made = jvm.java.util.ArrayList()
    for item in items:
        made.add(item)
    return made


def _by_topic(values: Offsets, shape: type[list[int]] | type[dict[str, int]]) -> str:
    """Spark's JSON of partitions: a list of numbers, or a number for each, per topic."""
    topics: dict[str, Any] = {}
    for partition, value in values.items():
        if shape is list:
            topics.setdefault(partition.topic, []).append(value)
        else:
            topics.setdefault(partition.topic, {})[str(partition.number)] = value
    return json.dumps(topics)
