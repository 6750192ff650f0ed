"""What is asked of a Kafka cluster outside of reading: topics, partitions, offsets.

The admin client runs in the driver's JVM, with the very properties that Spark's reader gets.
"""

from __future__ import annotations

import re
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
# How Kafka's client shows an offset with its partition; a topic's name has no other characters.
_OFFSET = re.compile(r"([A-Za-z0-9._-]+)-(\d+)=ListOffsetsResultInfo\(offset=(-?\d+)")
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
        self._cluster = ""
        self._questions: dict[str, tuple[tuple[Partition, ...], Any]] = {}

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
        self._cluster = self._ask(lambda admin: admin.describeCluster().clusterId().get())
        described = self._describe(names)
        # They are numbered from 0; a call for each of a thousand would take long.
        return {
            name: Topic(
                f"{self._cluster}/{topic.topicId().toString()}", tuple(range(topic.partitions().size()))
            )
            for name, topic in described.items()
        }

    def identities(self, names: Iterable[str]) -> dict[str, str]:
        """What tells each of these topics, described before, from one that has its name after it."""
        described = self._describe(names)
        return {name: f"{self._cluster}/{topic.topicId().toString()}" for name, topic in described.items()}

    def _describe(self, names: Iterable[str]) -> dict[str, Any]:
        question = self._jvm.java.util.ArrayList()
        for name in names:
            question.add(name)
        answers = self._ask(lambda admin: admin.describeTopics(question).topicNameValues())
        return {name: self._answer(name, answers.get(name)) for name in question}

    def _answer(self, topic: str, future: Any) -> Any:
        return self._ask(lambda admin: future.get(), topic)

    def offsets(
        self, partitions: Iterable[Partition], at: str | datetime, isolation_level: str | None = None
    ) -> Offsets:
        """The offsets of partitions at a place or a moment; -1 where there is no record that late."""
        wanted = tuple(partitions)
        if not wanted:
            return {}
        question = self._question(wanted, at)
        chosen = isolation_level or self._isolation_level
        level = getattr(self._kafka.common.IsolationLevel, chosen.upper())
        options = self._kafka.clients.admin.ListOffsetsOptions(level)
        # As one text: an answer for a thousand partitions would otherwise take some thousand calls.
        answer = str(self._ask(lambda admin: admin.listOffsets(question, options).all().get().toString()))
        found = {
            Partition(topic, int(number)): int(offset) for topic, number, offset in _OFFSET.findall(answer)
        }
        if found.keys() != set(wanted):
            raise SourceUnavailable(
                f"Kafka's answer for {len(wanted)} partitions is not understood: {answer[:200]}"
            )
        return found

    def _question(self, wanted: tuple[Partition, ...], at: str | datetime) -> Any:
        """The question as a Java map; the last of its kind is kept: it is asked a few times a second."""
        kept, question = self._questions.get(str(at), ((), None))
        if kept == wanted:
            return question
        kind = self._kafka.clients.admin.OffsetSpec
        if isinstance(at, datetime):
            spec = kind.forTimestamp(max(int(at.timestamp() * 1000), 0))  # below are words of the protocol
        else:
            spec = kind.earliest() if at == "earliest" else kind.latest()
        question = self._jvm.java.util.HashMap()
        new = self._kafka.common.TopicPartition
        for partition in wanted:
            question.put(new(partition.topic, partition.number), spec)
        self._questions[str(at)] = (wanted, question)
        return question

    def commit_group(self, group: str, offsets: Offsets) -> Any:
        """Begin to set a consumer group's offsets; the future of it."""
        question = self._jvm.java.util.HashMap()
        place, value = self._kafka.common.TopicPartition, self._kafka.clients.consumer.OffsetAndMetadata
        for partition, offset in offsets.items():
            question.put(place(partition.topic, partition.number), value(offset))
        return self._ask(lambda admin: admin.alterConsumerGroupOffsets(group, question).all())

    def settle(self, future: Any) -> str | None:
        """Why a future failed, if it did; to take longer than two seconds is to fail."""
        from py4j.protocol import Py4JError, Py4JJavaError

        try:
            future.get(2, self._jvm.java.util.concurrent.TimeUnit.SECONDS)
        except Py4JJavaError as error:
            return ": ".join(_cause(error))
        except (Py4JError, ConnectionError) as error:
            return type(error).__name__
        return None

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
