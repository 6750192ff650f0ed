"""The broker fixture does what tests of the product will rely on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.services.kafka import Broker, Message

if TYPE_CHECKING:
    from pathlib import Path


def _read(broker: Broker, topic: str, count: int) -> list[tuple[bytes | None, bytes | None, object]]:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "reader",
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        messages = [consumer.poll(30) for _ in range(count)]
        assert all(message is not None and message.error() is None for message in messages)
        return [(message.key(), message.value(), message.headers()) for message in messages]
    finally:
        consumer.close()


def test_messages_arrive_with_key_headers_and_tombstones(kafka: Broker) -> None:
    topic = kafka.create_topic()
    offsets = kafka.produce(
        topic,
        [
            Message(b"one", key=b"k", headers=[("h", b"\xff"), ("n", None)]),
            Message(None, key=b"gone"),
            b"two",
        ],
    )
    assert offsets == [(0, 0), (0, 1), (0, 2)]
    assert _read(kafka, topic, 3) == [
        (b"k", b"one", [("h", b"\xff"), ("n", None)]),
        (b"gone", None, None),
        (None, b"two", None),
    ]


def test_a_message_goes_to_the_partition_it_names(kafka: Broker) -> None:
    topic = kafka.create_topic(partitions=3)
    assert kafka.produce(topic, [Message(b"a", partition=2), Message(b"b", partition=0)]) == [(2, 0), (0, 0)]
    assert kafka.bounds(topic) == {0: (0, 1), 1: (0, 0), 2: (0, 1)}


def test_an_aborted_transaction_leaves_offsets_but_no_record(kafka: Broker) -> None:
    topic = kafka.create_topic()
    kafka.produce(topic, [b"lost"], transaction="abort")
    kafka.produce(topic, [b"kept"], transaction="commit")
    assert [value for _, value, _ in _read(kafka, topic, 1)] == [b"kept"]
    assert kafka.bounds(topic) == {0: (0, 4)}


def test_topics_can_grow_expire_and_be_made_anew(kafka: Broker) -> None:
    topic = kafka.create_topic()
    kafka.produce(topic, [b"1", b"2", b"3"])
    kafka.delete_records(topic, {0: 2})
    assert kafka.bounds(topic) == {0: (2, 3)}
    kafka.add_partitions(topic, 2)
    assert kafka.bounds(topic) == {0: (2, 3), 1: (0, 0)}
    kafka.delete_topic(topic)
    kafka.create_named_topic(topic)
    assert kafka.bounds(topic) == {0: (0, 0)}


@pytest.mark.slow
def test_records_survive_a_kill_and_a_restart(tmp_path: Path) -> None:
    with Broker(tmp_path / "broker") as broker:
        topic = broker.create_topic()
        broker.produce(topic, [b"before"])
        broker.kill()
        broker.start()
        broker.produce(topic, [b"after"])
        assert [value for _, value, _ in _read(broker, topic, 2)] == [b"before", b"after"]
