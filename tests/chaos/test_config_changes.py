"""The config is changed between two starts: the sink goes on, and nothing is deleted by hand."""

from __future__ import annotations

import pytest

from tests.chaos import oracle
from tests.chaos.river import River
from tests.chaos.stream import Stream
from tests.services.kafka import Broker

pytestmark = pytest.mark.slow

CHANGES = [
    {"batch_size": 1, "max_batch_size": 7},
    {"batch_size": 100, "max_batch_size": 10_000, "flush_interval": "1s"},
    {"compression": "zstd", "target_file_size_mb": 1},
    {"schema": "s STRING, n BIGINT NOT NULL"},  # the order of columns means nothing
    {"schema": "n BIGINT NOT NULL, s STRING NOT NULL"},  # a column that is null no more
    {"max_commit_retries": 0, "table_properties": {"delta.checkpointInterval": "3"}},
]


def test_each_change_of_a_sinks_keys_is_followed_from_where_it_was(river: River):
    river.sink["schema"] = "n BIGINT NOT NULL, s STRING"
    for change in [{}, *CHANGES]:
        river.sink.update(change)
        if "s STRING NOT NULL" in river.sink["schema"]:
            put_with_text(river.stream)
        else:
            river.stream.produce(20)
        river.finish()
    river.check()
    assert len({note["config"] for note in river.log.notes("claim")}) == 1 + len(CHANGES)


def put_with_text(stream: Stream) -> None:
    """Events with the second column, and some that are bad for want of it."""
    first = 1_000_000 + stream.produced
    good, bad = range(first, first + 10), range(first + 10, first + 20)
    stream.send({n: b'{"n": %d, "s": "text"}' % n for n in good})
    stream.send({n: b'{"n": %d}' % n for n in bad})
    stream.good |= set(good)
    stream.bad |= set(bad)


def test_topics_come_and_go_and_each_is_read_on_from_where_it_was(river: River, kafka: Broker):
    first, second, late = river.stream, Stream(kafka, first=1_000_000), Stream(kafka, first=2_000_000)

    def land(*streams: Stream, **source: str) -> None:
        river.source.update(topics=[stream.topic for stream in streams], **source)
        river.finish()

    first.produce(50)
    second.produce(50)
    land(first)
    assert river.log.read() == 50
    land(first, second)  # new, from its beginning
    assert river.log.read() == 100
    first.produce(50)
    second.produce(50)
    land(second)  # the first is left out for a while
    assert river.log.read() == 150
    late.produce(50)
    late.good, late.bad = set(), set()  # nobody asked for those
    land(first, second, late, starting_offsets="latest")  # back from where it was; new, from now on
    assert river.log.read() == 200
    late.produce(50)
    land(first, second, late, starting_offsets="earliest")  # once begun, a topic stays where it is
    oracle.check(river.table, first, second, late)
