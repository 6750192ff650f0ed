"""The source has lost records before they were read, or a topic is no longer the one it was."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from rivermouth.observe.observer import Observer
from rivermouth.pipeline import reset
from rivermouth.pipeline.ownership import Identity
from rivermouth.pipeline.run import make_sink
from rivermouth.spark.engine import Engine
from tests.services.kafka import Message

SINK = {"schema": "n BIGINT NOT NULL"}
GAPS = "SELECT topic, partition, \"offset\", message FROM {t_dead_letters} WHERE reason = 'RecordsLost'"


@pytest.fixture
def source(kafka):
    def describe(**more):
        return {"connector": "kafka", "config": {"bootstrap_servers": kafka.bootstrap_servers, **more}}

    return describe


def numbers(start, end, partition=0):
    return [Message(b'{"n": %d}' % n, partition=partition) for n in range(start, end)]


def landed(lake):
    return [n for (n,) in lake.query("SELECT n FROM {t} ORDER BY n")]


def test_expired_offsets_stop_the_sink_and_the_error_shows_the_range(lake, kafka, source, statuses):
    topic = kafka.create_topic(partitions=2)
    kafka.produce(topic, numbers(0, 10))
    lake.run(source(topics=[topic]), {"t": SINK})
    kafka.produce(topic, [*numbers(10, 30), *numbers(100, 110, partition=1)])
    kafka.delete_records(topic, {0: 25})
    seen = statuses(lake.run(source(topics=[topic]), {"t": SINK}))["t"]
    assert (seen.phase, seen.last_error.code) == ("failed", "DataLoss")
    assert f"{topic}/0: offsets 10 to 24 expired" in seen.last_error.message
    assert "on_data_loss: continue" in seen.last_error.message
    assert landed(lake) == list(range(10))


def test_with_continue_the_loss_is_a_gap_row_once_and_all_else_lands(lake, kafka, source, statuses):
    topic = kafka.create_topic(partitions=2)
    kafka.produce(topic, numbers(0, 10))
    lake.run(source(topics=[topic]), {"t": SINK})
    kafka.produce(topic, [*numbers(10, 30), *numbers(100, 110, partition=1)])
    kafka.delete_records(topic, {0: 25})
    keys = {**SINK, "on_data_loss": "continue"}
    for _ in range(2):
        observed = statuses(lake.run(source(topics=[topic]), {"t": keys}))["t"]
    assert observed.phase == "stopped"
    assert landed(lake) == [*range(10), *range(25, 30), *range(100, 110)]
    told = f"{topic}/0: offsets 10 to 24 expired before they were read"
    assert lake.query(GAPS) == [(topic, 0, 10, told)]


def test_a_gap_is_counted(lake, kafka, source, statuses):
    topic = kafka.create_topic()
    kafka.produce(topic, numbers(0, 10))
    lake.run(source(topics=[topic]), {"t": SINK})
    kafka.produce(topic, numbers(10, 20))
    kafka.delete_records(topic, {0: 17})
    keys = {**SINK, "on_data_loss": "continue", "on_bad_record": "drop"}
    seen = statuses(lake.run(source(topics=[topic]), {"t": keys}))["t"]
    assert (seen.gaps, seen.lost, seen.read) == (1, 7, 3)
    assert lake.query(GAPS)[0][2] == 10  # kept, although bad records are dropped


def test_a_topic_created_again_is_read_from_its_beginning_with_continue(lake, kafka, source):
    topic = kafka.create_topic(partitions=3)
    for partition in range(3):
        kafka.produce(topic, numbers(partition * 10, partition * 10 + 10, partition))
    lake.run(source(topics=[topic]), {"t": SINK})
    kafka.delete_topic(topic)
    kafka.create_named_topic(topic, partitions=2)
    kafka.produce(topic, [*numbers(100, 130), *numbers(200, 205, partition=1)])
    keys = {**SINK, "on_data_loss": "continue"}
    lake.run(source(topics=[topic]), {"t": keys})
    expected = [*range(30), *range(100, 130), *range(200, 205)]
    assert landed(lake) == expected
    assert [(number, offset) for _, number, offset, _ in sorted(lake.query(GAPS))] == [(0, 10), (1, 10)]
    # The third partition, when it returns, is new: the old one's offset means nothing in it.
    kafka.add_partitions(topic, 3)
    kafka.produce(topic, numbers(300, 303, partition=2))
    lake.run(source(topics=[topic]), {"t": keys})
    assert landed(lake) == [*expected, *range(300, 303)]
    assert len(lake.query(GAPS)) == 2


def test_a_topic_of_a_pattern_that_is_deleted_while_the_sink_runs(lake, kafka, source, statuses, monkeypatch):
    """With `continue` the others go on; the gap row says how far the lost one was read."""
    monkeypatch.setattr("rivermouth.sources.kafka._METADATA_SECONDS", 0.1)
    gone = kafka.create_topic("chaos-pattern")
    stays = kafka.create_topic("chaos-pattern")
    kafka.produce(gone, numbers(0, 5))
    kafka.produce(stays, numbers(5, 10))
    described = source(topic_pattern="chaos-pattern-.*")
    config = lake.config(described, {"t": {**SINK, "on_data_loss": "continue"}})
    observer = Observer(config.pipeline, {"t": config.sinks["t"].config.flush_interval})
    sink = make_sink(config, Identity.new(config.pipeline, "t"), Engine(lake.spark), observer)
    sink.claim()
    sink.run_epoch(sink.look())
    kafka.delete_topic(gone)
    kafka.produce(stays, numbers(10, 12))
    sink.source._looked = float("-inf")
    heads = sink.look()
    sink.run_epoch({p: o for p, o in heads.items() if o > sink.position[p]})
    sink.source.close()
    assert landed(lake) == list(range(12))
    assert [row[:3] for row in lake.query(GAPS)] == [(gone, 0, 5)]


def test_a_topic_of_a_pattern_that_is_deleted_while_the_sink_is_down(lake, kafka, source, statuses):
    """It is told, at every start or once, and one of its name that comes later is a new one."""
    gone, stays = kafka.create_topic("chaos-down"), kafka.create_topic("chaos-down")
    kafka.produce(gone, numbers(0, 5))
    kafka.produce(stays, numbers(5, 10))
    described = source(topic_pattern="chaos-down-.*")
    lake.run(described, {"t": SINK})
    kafka.delete_topic(gone)
    kafka.produce(stays, numbers(10, 12))
    for _ in range(2):
        seen = statuses(lake.run(described, {"t": SINK}))["t"]
        assert (seen.phase, seen.last_error.code) == ("failed", "DataLoss")
        assert f"{gone}/0 is gone" in seen.last_error.message
    for _ in range(2):
        lake.run(described, {"t": {**SINK, "on_data_loss": "continue"}})
    assert landed(lake) == list(range(12))
    assert [row[:3] for row in lake.query(GAPS)] == [(gone, 0, 5)]
    kafka.create_named_topic(gone)
    kafka.produce(gone, numbers(100, 103))
    seen = statuses(lake.run(described, {"t": SINK}))["t"]
    assert seen.phase == "stopped"
    assert landed(lake) == [*range(12), *range(100, 103)]


def test_records_of_an_open_transaction_that_were_read_uncommitted_are_no_loss(lake, kafka, source, statuses):
    topic = kafka.create_topic()
    kafka.produce(topic, numbers(0, 5))
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": f"open-{topic}"})
    producer.init_transactions()
    producer.begin_transaction()
    for message in numbers(5, 10):
        producer.produce(topic, message.value, partition=0)
    producer.flush()
    lake.run(source(topics=[topic], isolation_level="read_uncommitted"), {"t": SINK})
    assert landed(lake) == list(range(10))
    for end in (producer.flush, producer.commit_transaction):  # still open, and then not
        seen = statuses(lake.run(source(topics=[topic]), {"t": {**SINK, "on_data_loss": "continue"}}))["t"]
        assert (seen.phase, seen.gaps) == ("stopped", 0)
        end()
    lake.run(source(topics=[topic]), {"t": SINK})
    assert landed(lake) == list(range(10))


def test_a_reset_of_one_partition_of_a_topic_created_again_resets_the_others_too(lake, kafka, source):
    topic = kafka.create_topic(partitions=2)
    kafka.produce(topic, [*numbers(0, 20), *numbers(100, 120, partition=1)])
    described = source(topics=[topic])
    lake.run(described, {"t": SINK})
    kafka.delete_topic(topic)
    kafka.create_named_topic(topic, partitions=2)
    kafka.produce(topic, [*numbers(200, 230), *numbers(300, 330, partition=1)])
    config = lake.config(described, {"t": SINK})
    observer = Observer(config.pipeline, {"t": config.sinks["t"].config.flush_interval})
    sink = make_sink(config, Identity.new(config.pipeline, "t"), Engine(lake.spark), observer)
    moves = reset.moves(sink, {topic: {0: 10}})
    assert [(move.partition.number, move.after) for move in moves] == [(0, 10), (1, 0)]
    reset.reset(sink, moves)
    sink.source.close()
    lake.run(described, {"t": SINK})
    assert landed(lake) == [*range(20), *range(100, 120), *range(210, 230), *range(300, 330)]
