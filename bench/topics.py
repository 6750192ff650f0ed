"""Fills topics with the events of the benchmark, shared evenly among four partitions."""

from __future__ import annotations

from collections.abc import Iterator

from bench.events import events
from tests.services.kafka import Broker, Message

PARTITIONS = 4


def fill(broker: Broker, topic: str, count: int, *, one_bad_in: int = 0) -> None:
    """Create a topic of `count` records, one of each `one_bad_in` cut off in its middle."""
    broker.create_named_topic(topic, PARTITIONS)
    settings = {"compression.type": "lz4", "linger.ms": 50}
    broker.produce(topic, _messages(count, one_bad_in), config=settings)


def _messages(count: int, one_bad_in: int) -> Iterator[Message]:
    for number, value in enumerate(events(count)):
        # Not the first of each hundred: those would all be in one partition.
        bad = one_bad_in and number % one_bad_in == number // one_bad_in % one_bad_in
        yield Message(value[: len(value) // 2] if bad else value, partition=number % PARTITIONS)
