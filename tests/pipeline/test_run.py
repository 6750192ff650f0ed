"""Whole pipelines on the generator: every record is in its table once, or in the dead letters once."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from rivermouth.delta import dead_letters
from rivermouth.errors import RivermouthError

NUMBERS = {"schema": "n BIGINT NOT NULL, ts TIMESTAMP"}


def generator(count: int, *topics: str, **more):
    return {
        "connector": "generator",
        "config": {"topics": list(topics) or ["numbers"], "count": count, **more},
    }


def test_every_record_lands_once_or_is_a_dead_letter_once(lake, statuses):
    seen = statuses(lake.run(generator(20_000, broken=0.01), {"numbers": NUMBERS}))["numbers"]
    rows, distinct = lake.query("SELECT count(n), count(DISTINCT n) FROM {numbers}")[0]
    dead, dead_distinct = lake.query('SELECT count(*), count(DISTINCT "offset") FROM {numbers_dead_letters}')[
        0
    ]
    assert rows == distinct == seen.written == lake.spark_count("numbers")
    assert dead == dead_distinct == seen.dead_letters == lake.spark_count("numbers_dead_letters")
    assert rows + dead == seen.read == 20_000
    assert 100 < dead < 300
    both = lake.query('SELECT count(*) FROM {numbers} JOIN {numbers_dead_letters} ON n = "offset"')
    assert both == [(0,)]


def test_running_again_goes_on_where_it_stopped(lake):
    lake.run(generator(5_000, broken=0.1), {"numbers": NUMBERS})
    lake.run(generator(5_000, broken=0.1), {"numbers": NUMBERS})
    first = lake.query("SELECT count(n) FROM {numbers}")[0][0]
    lake.run(generator(8_000, broken=0.1), {"numbers": NUMBERS})
    rows, distinct = lake.query("SELECT count(n), count(DISTINCT n) FROM {numbers}")[0]
    dead = lake.query("SELECT count(*) FROM {numbers_dead_letters}")[0][0]
    assert first < rows == distinct
    assert rows + dead == 8_000


def test_a_backlog_drains_in_steps_of_max_batch_size(lake, statuses):
    keys = {**NUMBERS, "max_batch_size": 3_000, "batch_size": 1_000}
    seen = statuses(lake.run(generator(10_000, partitions=3), {"numbers": keys}))["numbers"]
    assert (seen.commits, seen.batch_max) == (4, 3_000)
    assert lake.query("SELECT count(n), count(DISTINCT n) FROM {numbers}") == [(10_000, 10_000)]


def test_dead_letters_keep_the_record_whole_with_its_reason(lake):
    lake.run(generator(3_000, broken=0.1), {"numbers": NUMBERS})
    rows = lake.query(
        'SELECT topic, partition, "offset", reason, message, pipeline, sink, epoch, key, value, day '
        'FROM {numbers_dead_letters} ORDER BY "offset"'
    )
    assert {row[3] for row in rows} == {
        "InvalidJson", "NotAnObject", "WrongType", "MissingField", "InvalidEncoding", "NullValue",
    }  # fmt: skip
    for topic, partition, offset, reason, message, pipeline, sink, epoch, key, value, day in rows:
        assert (topic, partition, pipeline, sink, epoch) == ("numbers", 0, "test", "numbers", 1)
        assert key == str(offset).encode()
        assert (value is None) == (reason == "NullValue")
        assert message
        assert day is not None
    assert DeltaTable(str(lake.folder / "numbers_dead_letters")).metadata().partition_columns == ["day"]


def test_one_source_feeds_many_sinks_and_one_sink_takes_many_topics(lake):
    lake.run(
        generator(1_000, "orders", "payments", "clicks"),
        {
            "orders": {"topics": ["orders"], "schema": "order_id STRING NOT NULL, amount DECIMAL(10,2)"},
            "money": {"topic_pattern": "(orders|payments)", "schema": "amount DOUBLE"},
            "everything": {"schema_type": "envelope", "partition_columns": ["stream"]},
        },
    )
    assert lake.query("SELECT count(*), count(DISTINCT order_id) FROM {orders}") == [(1_000, 1_000)]
    assert lake.query("SELECT count(*) FROM {money}") == [(2_000,)]
    streams = lake.query("SELECT stream, count(*) FROM {everything} GROUP BY ALL ORDER BY ALL")
    assert streams == [("clicks", 1_000), ("orders", 1_000), ("payments", 1_000)]


def test_on_bad_record_drop_counts_and_keeps_nothing(lake, statuses):
    seen = statuses(lake.run(generator(2_000, broken=0.1), {"numbers": {**NUMBERS, "on_bad_record": "drop"}}))
    status = seen["numbers"]
    assert sum(status.dropped.values()) == 2_000 - status.written > 0
    assert not (lake.folder / "numbers_dead_letters").exists()


def test_on_bad_record_fail_stops_the_sink_and_shows_the_record(lake, statuses):
    observer = lake.run(generator(2_000, broken=0.1), {"numbers": {**NUMBERS, "on_bad_record": "fail"}})
    status = statuses(observer)["numbers"]
    assert status.phase == "failed"
    assert status.last_error.code == "BadRecord"
    assert "numbers/0 offset" in status.last_error.message
    assert lake.query("SELECT count(*) FROM {numbers}") == [(0,)]
    # Nothing is lost: a later run with another policy lands all of it.
    lake.run(generator(2_000, broken=0.1), {"numbers": NUMBERS})
    total = lake.query(
        "SELECT (SELECT count(*) FROM {numbers}) + (SELECT count(*) FROM {numbers_dead_letters})"
    )
    assert total == [(2_000,)]


def test_overwrite_replaces_the_table_with_one_epoch(lake, statuses):
    keys = {**NUMBERS, "write_mode": "overwrite", "max_batch_size": 1_000, "batch_size": 1_000}
    seen = statuses(lake.run(generator(5_000), {"numbers": keys}))["numbers"]
    assert seen.commits == 1  # a backlog is one epoch
    lake.run(generator(5_010), {"numbers": keys})
    assert lake.query("SELECT count(*), min(n), max(n) FROM {numbers}") == [(10, 5_000, 5_009)]
    lake.run(generator(5_010), {"numbers": keys})
    assert lake.query("SELECT count(*) FROM {numbers}") == [(10,)]


@pytest.mark.parametrize(
    ("compression", "codec"),
    [("snappy", "SNAPPY"), ("gzip", "GZIP"), ("lz4", "LZ4"), ("zstd", "ZSTD"), ("none", "UNCOMPRESSED")],
)
def test_files_have_the_compression_asked_for_and_three_readers_read_them(lake, compression, codec):
    lake.run(generator(500), {"numbers": {**NUMBERS, "compression": compression}})
    file = next((lake.folder / "numbers").glob("*.parquet"))
    assert pq.ParquetFile(file).metadata.row_group(0).column(0).compression.startswith(codec)
    assert lake.query("SELECT sum(n) FROM {numbers}") == [(500 * 499 // 2,)]
    assert (
        lake.spark_count("numbers")
        == DeltaTable(str(lake.folder / "numbers")).to_pyarrow_table().num_rows
        == 500
    )


def test_partitions_are_folders_and_prune(lake):
    lake.run(
        generator(2_000, "orders"),
        {
            "orders": {
                "schema": "order_id STRING, product STRING, ts TIMESTAMP",
                "partition_columns": ["product"],
            }
        },
    )
    folders = {p.name for p in (lake.folder / "orders").iterdir() if "=" in p.name}
    assert "product=lamp" in folders
    assert lake.query("SELECT count(DISTINCT product) FROM {orders}") == [(7,)]
    lamps = lake.query("SELECT count(*) FROM {orders} WHERE product = 'lamp'")[0][0]
    table = DeltaTable(str(lake.folder / "orders"))
    assert table.to_pyarrow_table(filters=[("product", "=", "lamp")]).num_rows == lamps > 0


def test_dead_letters_that_a_crash_kept_out_are_finished_by_the_next_start(lake, statuses, monkeypatch):
    real = dead_letters.land

    def crash(*arguments):
        raise SystemExit("killed between the two commits")

    monkeypatch.setattr(dead_letters, "land", crash)
    monkeypatch.setattr("threading.excepthook", lambda arguments: None)
    lake.run(generator(2_000, broken=0.1), {"numbers": NUMBERS})
    written = lake.query("SELECT count(*) FROM {numbers}")[0][0]
    assert 0 < written < 2_000
    monkeypatch.setattr(dead_letters, "land", real)
    # Also when the config names another dead-letter table by then: the files lie where they were written.
    elsewhere = {**NUMBERS, "dead_letter_uri": str(lake.folder / "elsewhere")}
    lake.run(generator(2_000, broken=0.1), {"numbers": elsewhere})
    assert lake.query("SELECT count(*) FROM {numbers}") == [(written,)]
    rows, distinct = lake.query('SELECT count(*), count(DISTINCT "offset") FROM {numbers_dead_letters}')[0]
    assert rows == distinct == 2_000 - written


def test_a_quiet_sink_whose_log_was_cleaned_up_goes_on(lake):
    """The commit that lists the last dead letters is gone; the dead-letter table shows that they are in."""
    lake.run(generator(1_000, broken=0.1), {"numbers": NUMBERS})
    path = lake.folder / "numbers"
    table = DeltaTable(str(path))
    table.create_checkpoint()
    for version in range(table.version()):
        (path / "_delta_log" / f"{version:020d}.json").unlink()
    note = path / "_delta_log" / f"{table.version():020d}.json"
    note.write_text('{"commitInfo":{}}\n')  # as if others had committed since
    lake.run(generator(2_000, broken=0.1), {"numbers": NUMBERS})
    rows, distinct = lake.query("SELECT count(n), count(DISTINCT n) FROM {numbers}")[0]
    dead = lake.query("SELECT count(*) FROM {numbers_dead_letters}")[0][0]
    assert rows == distinct == 2_000 - dead


def test_a_pipeline_of_another_name_shares_the_table_with_its_own_progress(lake):
    from rivermouth.pipeline.run import run

    lake.run(generator(100), {"numbers": NUMBERS})
    run(lake.config(generator(100), {"numbers": NUMBERS}, pipeline="other"), once=True, spark=lake.spark)
    assert lake.query("SELECT count(n), count(DISTINCT n) FROM {numbers}") == [(200, 100)]


def test_one_poisoned_sink_of_twenty_does_not_hold_up_the_others(lake, statuses):
    sinks = {f"sink{n}": dict(NUMBERS) for n in range(20)}
    sinks["sink7"] = {**NUMBERS, "on_bad_record": "fail"}
    seen = statuses(lake.run(generator(1_000, broken=0.05), sinks))
    assert [name for name, status in seen.items() if status.phase == "failed"] == ["sink7"]
    for name in sinks:
        if name != "sink7":
            rows, dead = seen[name].written, seen[name].dead_letters
            assert lake.query(f"SELECT count(DISTINCT n) FROM {{{name}}}") == [(rows,)]
            assert rows + dead == 1_000


def test_only_the_sinks_named_are_run(lake, statuses):
    sinks = {"a": dict(NUMBERS), "b": dict(NUMBERS)}
    assert list(statuses(lake.run(generator(10), sinks, only=["b"]))) == ["b"]
    assert not (lake.folder / "a").exists()
    with pytest.raises(RivermouthError, match="no sink 'c'"):
        lake.run(generator(10), sinks, only=["c"])


def test_the_commit_says_what_was_read_and_where_it_stands(lake):
    lake.run(generator(100, broken=0.2), {"numbers": NUMBERS})
    import json

    note = json.loads(DeltaTable(str(lake.folder / "numbers")).history(1)[0]["userMetadata"])
    assert (note["pipeline"], note["sink"], note["epoch"], note["generation"]) == ("test", "numbers", 1, 1)
    assert note["offsets"] == {"numbers/0": [0, 100]}
    assert (
        note["counts"]["read"] == 100 == note["counts"]["written"] + sum(note["counts"]["rejected"].values())
    )


def test_an_epoch_follows_the_age_of_what_waits(lake, statuses):
    """A paced source: nothing waits for a full batch, the flush interval lands it."""
    keys = {**NUMBERS, "batch_size": 1_000_000, "flush_interval": "300ms"}
    seen = statuses(lake.run(generator(100_000, rate=500), {"numbers": keys}, seconds=6))["numbers"]
    assert seen.commits >= 2
    rows, distinct, top = lake.query("SELECT count(n), count(DISTINCT n), max(n) FROM {numbers}")[0]
    assert rows == distinct == top + 1 == seen.written
