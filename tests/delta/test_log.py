"""The log read by ourselves agrees with delta-rs and delta-spark, whatever the checkpoint looks like."""

from __future__ import annotations

import os
import shutil
import time

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from pyarrow import fs

from rivermouth.delta.log import LogReplaced, LogView, newest_checkpoint, parse_commit, parse_note
from rivermouth.delta.table import Table, TableSpec
from rivermouth.errors import DeltaWriterFailed


def append(path, app_id: str, version: int) -> None:
    write_deltalake(
        str(path),
        pa.table({"n": pa.array([version], pa.int64())}),
        mode="append",
        commit_properties=CommitProperties(
            app_transactions=[Transaction(app_id, version, int(time.time() * 1000))]
        ),
    )


def view(path) -> LogView:
    return LogView(fs.LocalFileSystem(), f"{path}/_delta_log")


def test_txns_are_read_with_and_without_a_checkpoint(tmp_path):
    for n in range(5):
        append(tmp_path, f"app-{n % 2}", n)
    log = view(tmp_path)
    log.advance(4)
    assert log.txns == {"app-0": 4, "app-1": 3}

    DeltaTable(str(tmp_path)).create_checkpoint()
    for n in range(4):  # a checkpoint must be enough: the commits before it may be cleaned up
        (tmp_path / "_delta_log" / f"{n:020d}.json").unlink()
    append(tmp_path, "app-2", 5)
    log = view(tmp_path)
    log.advance(5)
    assert log.txns == {"app-0": 4, "app-1": 3, "app-2": 5}


def test_an_old_version_is_read_as_it_was(tmp_path):
    for n in range(3):
        append(tmp_path, "app", n)
    log = view(tmp_path)
    log.advance(1)
    assert (log.version, log.txns) == (1, {"app": 1})


def test_reading_on_gives_each_new_commit_once(tmp_path):
    append(tmp_path, "app", 0)
    log = view(tmp_path)
    log.advance(0)
    append(tmp_path, "app", 1)
    append(tmp_path, "app", 2)
    assert [commit.txns for commit in log.advance(2) or ()] == [{"app": 1}, {"app": 2}]
    assert log.advance(2) == []


def test_another_log_in_the_same_place_is_recognised(tmp_path):
    for n in range(3):
        append(tmp_path / "t", "app", n)
    log = view(tmp_path / "t")
    log.advance(2)
    shutil.rmtree(tmp_path / "t")
    for n in range(4):
        append(tmp_path / "t", "app", n)
    with pytest.raises(LogReplaced):
        log.advance(3)


def test_a_log_that_was_cleaned_up_meanwhile_is_read_from_its_checkpoint(tmp_path):
    append(tmp_path, "app", 0)
    log = view(tmp_path)
    log.advance(0)
    for n in range(1, 4):
        append(tmp_path, "app", n)
    DeltaTable(str(tmp_path)).create_checkpoint()
    (tmp_path / "_delta_log" / f"{2:020d}.json").unlink()
    assert log.advance(3) is None
    assert (log.version, log.txns) == (3, {"app": 3})


@pytest.mark.parametrize("v2", [False, True])
def test_a_checkpoint_of_delta_spark_is_understood(spark, tmp_path, v2):
    path = tmp_path / "table"
    policy = "v2" if v2 else "classic"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (n BIGINT) USING delta "
        f"TBLPROPERTIES ('delta.checkpointInterval' = '2', 'delta.checkpointPolicy' = '{policy}')"
    )
    for n in range(1, 4):
        frame = spark.range(1).selectExpr("id AS n")
        frame.write.format("delta").option("txnAppId", "app").option("txnVersion", n).mode("append").save(
            str(path)
        )
    names = [p.name for p in (path / "_delta_log").iterdir()]
    assert any(".checkpoint" in name for name in names), names
    (path / "_delta_log" / f"{0:020d}.json").unlink()
    log = view(path)
    log.advance(3)
    assert log.txns == {"app": 3}


def test_the_newest_complete_checkpoint_is_chosen():
    names = [
        "00000000000000000002.checkpoint.parquet",
        "00000000000000000004.checkpoint.0000000001.0000000002.parquet",
        "00000000000000000004.checkpoint.0000000002.0000000002.parquet",
        "00000000000000000006.checkpoint.0000000001.0000000002.parquet",
        "00000000000000000008.checkpoint.parquet",
        "00000000000000000007.json",
        "_last_checkpoint",
    ]
    assert newest_checkpoint(names, 7) == (4, names[1:3])
    assert newest_checkpoint(names, 3) == (2, names[:1])
    assert newest_checkpoint(names, 8) == (8, [names[4]])
    assert newest_checkpoint(names, 1) == (-1, [])


def test_other_writers_notes_are_not_ours():
    assert parse_note("hello") == {}
    assert parse_note(None) == {}
    assert parse_note('{"a": 1}') == {}
    assert parse_note('{"rivermouth": "1", "nonce": "x"}')["nonce"] == "x"


def test_a_commit_that_changes_the_table_is_marked():
    assert parse_commit(1, b'{"metaData":{"id":"x"}}\n').changes_table
    assert parse_commit(1, b'{"protocol":{"minReaderVersion":1}}\n').changes_table
    assert not parse_commit(1, b'{"add":{"path":"metaData"}}\n{"commitInfo":{}}\n').changes_table


@pytest.mark.parametrize("versions", [0, 1, 3, 6])
def test_a_table_created_again_is_recognised_however_long_its_log_is(tmp_path, versions):
    """Also where its log is shorter, and delta-rs still holds the old one."""
    uri = str(tmp_path / "t")
    schema = pa.schema([("n", pa.int64())])
    rows = pa.table({"n": [1]})
    for _ in range(4):
        write_deltalake(uri, rows, mode="append")
    table = Table(TableSpec(uri, schema), DeltaTable(uri))
    os.rename(uri, f"{uri}-dropped")
    for _ in range(versions):
        write_deltalake(uri, rows, mode="append")
    told = "dropped and created again" if versions else "was dropped while"
    with pytest.raises(DeltaWriterFailed, match=told):
        table.refresh()
