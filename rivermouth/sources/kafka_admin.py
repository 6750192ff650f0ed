"""What is asked of a Kafka cluster outside of reading: topics, partitions, offsets.

The admin client runs in the driver's JVM, with the very properties that Spark's reader gets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rivermouth.config.redact import redact
from rivermouth.errors import RivermouthError, SourceInvalid, SourceUnavailable
from rivermouth.records import Offsets, Partition

# What no waiting mends.
_WRONG = {
    "ConfigException",
    "KafkaException",
    "IllegalArgumentException",
    "InvalidConfigurationException",
    "IllegalSaslStateException",
}
# Less than the client's own: a broker that is gone should be told soon.
_PATIENCE = {"default.api.timeout.ms": "15000", "request.timeout.ms": "10000"}


@dataclass(frozen=True)
class Topic:
    """A topic as it is now; one that is deleted and created again has another identity."""

    identity: str
    partitions: tuple[int, ...]


class Admin:
    """A cluster's admin client, made when first asked."""

    def __init__(self, jvm: Callable[[], Any], properties: Mapping[str, str], isolation_level: str) -> None:
        """`jvm` gives the JVM, when the first question is asked."""
        # Unless one of the two is set: the client refuses a pair that does not fit.
        patience = {} if _PATIENCE.keys() & properties.keys() else _PATIENCE
        self._find_jvm = jvm
        self._properties = {**patience, **properties}
        self._isolation_level = isolation_level
        self._made: Any = None

    @property
    def _jvm(self) -> Any:
        return self._find_jvm()

    @property
    def _kafka(self) -> Any:
        return self._jvm.org.apache.kafka

    def topic_names(self) -> list[str]:
        """Every topic of the cluster, without Kafka's own."""
        return [str(name) for name in self._ask(lambda admin: admin.listTopics().names().get())]

    def topics(self, names: Iterable[str]) -> dict[str, Topic]:
        """These topics; one that does not exist is an error."""
        wanted = list(names)
        cluster = self._ask(lambda admin: admin.describeCluster().clusterId().get())
        question = self._jvm.java.util.ArrayList()
        for name in wanted:
            question.add(name)
        answers = self._ask(lambda admin: admin.describeTopics(question).topicNameValues())
        return {name: self._topic(name, cluster, answers.get(name)) for name in wanted}

    def _topic(self, name: str, cluster: str, answer: Any) -> Topic:
        found = self._ask(lambda admin: answer.get(), name)
        return Topic(
            f"{cluster}/{found.topicId().toString()}", tuple(p.partition() for p in found.partitions())
        )

    def offsets(self, partitions: Iterable[Partition], at: str | datetime) -> Offsets:
        """The offsets of partitions at a place or a moment; -1 where there is no record that late."""
        wanted = list(partitions)
        if not wanted:
            return {}
        kind = self._kafka.clients.admin.OffsetSpec
        if isinstance(at, datetime):
            spec = kind.forTimestamp(int(at.timestamp() * 1000))
        else:
            spec = kind.earliest() if at == "earliest" else kind.latest()
        question = self._jvm.java.util.HashMap()
        for partition in wanted:
            question.put(self._kafka.common.TopicPartition(partition.topic, partition.number), spec)
        level = getattr(self._kafka.common.IsolationLevel, self._isolation_level.upper())
        options = self._kafka.clients.admin.ListOffsetsOptions(level)
        answer = self._ask(lambda admin: admin.listOffsets(question, options).all().get())
        found: Offsets = {}
        for entry in answer.entrySet():
            place = entry.getKey()
            found[Partition(str(place.topic()), int(place.partition()))] = int(entry.getValue().offset())
        return found

    def close(self) -> None:
        """End the client, if there is one."""
        if self._made is not None:
            admin, self._made = self._made, None
            admin.close(self._jvm.java.time.Duration.ofSeconds(2))

    def _ask(self, question: Callable[[Any], Any], topic: str = "") -> Any:
        """Ask the admin client, of a topic or in general; what it throws becomes an error of ours."""
        from py4j.protocol import Py4JJavaError

        try:
            if self._made is None:
                properties = self._jvm.java.util.Properties()
                for name, value in self._properties.items():
                    properties.setProperty(name, value)
                self._made = self._kafka.clients.admin.AdminClient.create(properties)
            return question(self._made)
        except Py4JJavaError as error:
            raise self._understood(*_cause(error), topic) from None

    def _understood(self, name: str, message: str, topic: str) -> RivermouthError:
        servers = redact(self._properties["bootstrap.servers"])
        if "JAAS" in message or "login module" in message:
            message = "the JAAS config is not valid"  # what Java says quotes parts of it
        told = f"Kafka at {servers}: {name}: {message}"
        if name == "UnknownTopicOrPartitionException" and topic:
            return SourceUnavailable(
                f"there is no topic {topic!r} at {servers}",
                hint="check the name, or create the topic: it is taken up as soon as it is there",
            )
        # A name that cannot be looked up may be back in a minute, although the client blames the config.
        wrong = name in _WRONG and "bootstrap urls" not in message
        if wrong or "Authentication" in name or "Authorization" in name:
            return SourceInvalid(told, hint="check the source's options: security.protocol, sasl.*, ssl.*")
        return SourceUnavailable(told, hint="check bootstrap_servers and that the brokers are up")


def _cause(error: Any) -> tuple[str, str]:
    """The class and message of the exception at the bottom of a Java error."""
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.getClass().getSimpleName()), str(cause.getMessage())
