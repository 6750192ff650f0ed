"""How large batches get, and that a stream whose records grow is still landed."""

from __future__ import annotations

import pytest

from rivermouth.pipeline import batches


@pytest.mark.parametrize(
    ("largest", "expected"),
    [
        (None, batches.WEIGHED),
        (0, batches.UNWEIGHED),
        (200, batches.UNWEIGHED),
        (5_000, batches.UNWEIGHED),
        (6_000, batches.WEIGHED),
        (1_000_000, batches.WEIGHED),
    ],
)
def test_only_small_records_go_unweighed(largest, expected):
    assert batches.limit(largest, batches.budget(4 * 2**30, 2)) == expected


def test_a_small_heap_or_many_cores_allow_less():
    assert batches.budget(1 * 2**30, 16) == 16 * 2**20
    assert batches.limit(1_000, batches.budget(1 * 2**30, 16)) == batches.WEIGHED


def test_a_limit_the_user_set_is_left_alone(spark):
    session = spark.newSession()
    batches.apply(session, 100)
    assert session.conf.get("spark.sql.execution.arrow.maxBytesPerBatch") == str(batches.UNWEIGHED)
    session.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", "1000")
    batches.apply(session, 100)
    assert session.conf.get("spark.sql.execution.arrow.maxBytesPerBatch") == "1000"


def test_large_records_after_small_ones_land(lake, kafka):
    topic = kafka.create_topic(config={"max.message.bytes": "2000000"})
    source = {
        "connector": "kafka",
        "config": {"bootstrap_servers": kafka.bootstrap_servers, "topics": [topic]},
    }
    kafka.produce(topic, [b"x"] * 1000)
    large = [b"y" * 900_000] * 200
    kafka.produce(topic, large, config={"queue.buffering.max.kbytes": 1_000_000})
    keys = {"schema_type": "bytes", "batch_size": 100, "max_batch_size": 1000}
    lake.run(source, {"t": keys})
    assert lake.query("SELECT size, count(*) FROM {t} GROUP BY 1 ORDER BY 1") == [(1, 1000), (900_000, 200)]
