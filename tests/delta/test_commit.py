"""Commits land once: conflicts, lost answers, fencing, overwrites; on real tables."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from rivermouth.delta.commit import Change, commit, delays
from rivermouth.delta.files import FileSpec
from rivermouth.delta.table import Table, TableSpec, open_table
from rivermouth.errors import DeltaCommitFailed, Fenced, NotATable, SchemaMismatch

SCHEMA = pa.schema([pa.field("n", pa.int64())])


def open_at(path, **more) -> Table:
    return open_table(TableSpec(str(path), SCHEMA, **more), create=True)


def file(path, name: str, n: int) -> FileSpec:
    pq.write_table(pa.table({"n": pa.array([n], pa.int64())}), path / name)
    return FileSpec(name, (path / name).stat().st_size, 1, {}, '{"numRecords":1}')


def land(table: Table, change: Change, **more):
    options = {"retries": 3, "guard": lambda: None, "sleep": lambda seconds: None, **more}
    return commit(table, change, **options)


def rows(path) -> list[int]:
    return sorted(DeltaTable(str(path)).to_pyarrow_table().column("n").to_pylist())


def test_retries_wait_100_ms_doubling():
    assert delays(4) == [0.1, 0.2, 0.4, 0.8]
    assert delays(0) == []


def test_a_commit_carries_rows_txns_and_note(tmp_path):
    table = open_at(tmp_path)
    landed = land(table, Change({"a": 7}, {"kind": "epoch", "epoch": 7}, [file(tmp_path, "f", 1)]))
    assert (landed.version, landed.retries) == (1, 0)
    assert table.txns == {"a": 7}
    assert table.log.commit(1).note["epoch"] == 7
    assert rows(tmp_path) == [1]


def test_others_commits_are_no_obstacle(tmp_path):
    table = open_at(tmp_path)
    write_deltalake(str(tmp_path), pa.table({"n": pa.array([5], pa.int64())}), mode="append")
    landed = land(table, Change({"a": 1}, {}, [file(tmp_path, "f", 1)]), retries=0)
    assert landed.retries == 0
    assert rows(tmp_path) == [1, 5]


def test_a_commit_that_another_writers_overtakes_is_tried_again_on_fresh_state(tmp_path):
    table = open_at(tmp_path)
    told, overtaken = [], []

    def somebody_is_first_once():
        if not overtaken:
            overtaken.append(True)
            write_deltalake(str(tmp_path), pa.table({"n": pa.array([5], pa.int64())}), mode="append")

    landed = land(
        table,
        Change({"a": 1}, {}, [file(tmp_path, "f", 1)]),
        guard=somebody_is_first_once,
        on_retry=lambda attempt, reason: told.append(attempt),
    )
    assert (landed.retries, told) == (1, [1])
    assert rows(tmp_path) == [1, 5]


def test_a_commit_that_landed_though_its_answer_was_lost_is_not_made_twice(tmp_path, monkeypatch):
    table = open_at(tmp_path)
    from rivermouth.delta import commit as module

    real = module._transact

    def lost(table, change):
        real(table, change)
        raise OSError("connection reset")

    monkeypatch.setattr(module, "_transact", lost)
    landed = land(table, Change({"a": 1}, {}, [file(tmp_path, "f", 1)]))
    assert landed.version == 1
    assert rows(tmp_path) == [1]
    assert DeltaTable(str(tmp_path)).version() == 1


def test_the_last_attempts_answer_may_be_lost_too(tmp_path, monkeypatch):
    table = open_at(tmp_path)
    from rivermouth.delta import commit as module

    real = module._transact

    def lost(table, change):
        real(table, change)
        raise OSError("connection reset")

    monkeypatch.setattr(module, "_transact", lost)
    assert land(table, Change({"a": 1}, {}), retries=0).version == 1


def test_a_commit_that_cannot_be_made_fails_after_its_retries_and_changes_nothing(tmp_path):
    table = open_at(tmp_path)
    told, waited = [], []
    write_deltalake(str(tmp_path), pa.table({"n": pa.array([5], pa.int64())}), mode="append")

    def somebody_is_always_first():
        write_deltalake(str(tmp_path), pa.table({"n": pa.array([5], pa.int64())}), mode="append")

    with pytest.raises(DeltaCommitFailed, match="failed 4 times"):
        land(
            table,
            Change({"a": 1}, {}, [file(tmp_path, "f", 1)]),
            guard=somebody_is_always_first,
            on_retry=lambda attempt, reason: told.append(attempt),
            sleep=waited.append,
        )
    assert told == [1, 2, 3]
    assert waited == [0.1, 0.2, 0.4]
    assert 1 not in rows(tmp_path)


def test_the_guard_stops_a_commit_before_it_is_made(tmp_path):
    table = open_at(tmp_path)

    def guard():
        raise Fenced("another one")

    with pytest.raises(Fenced):
        land(table, Change({"a": 1}, {}), guard=guard)
    assert DeltaTable(str(tmp_path)).version() == 0


def test_two_that_move_the_same_txn_cannot_both_win(tmp_path):
    mine, theirs = open_at(tmp_path), open_at(tmp_path)
    land(theirs, Change({"generation": 2}, {}))
    seen = []

    def guard():
        seen.append(mine.txns.get("generation"))
        if mine.txns.get("generation") == 2:
            raise Fenced("generation 2")

    with pytest.raises(Fenced):
        land(mine, Change({"generation": 1}, {}), guard=guard)
    assert seen == [2]


def test_an_overwrite_replaces_what_others_appended_meanwhile(tmp_path):
    table = open_at(tmp_path, overwrite=True)
    write_deltalake(str(tmp_path), pa.table({"n": pa.array([5], pa.int64())}), mode="append")
    land(table, Change({"a": 1}, {}, [file(tmp_path, "f", 1)], overwrite=True))
    assert rows(tmp_path) == [1]


def test_a_table_altered_meanwhile_is_compared_again(tmp_path):
    table = open_at(tmp_path)
    extended = pa.table({"n": pa.array([1], pa.int64()), "m": pa.array([2], pa.int64())})
    write_deltalake(str(tmp_path), extended, mode="append", schema_mode="merge")
    with pytest.raises(SchemaMismatch, match="m: table long, sink has none"):
        land(table, Change({"a": 1}, {}, [file(tmp_path, "f", 1)]))


def test_a_property_set_meanwhile_is_no_obstacle(tmp_path):
    table = open_at(tmp_path)
    DeltaTable(str(tmp_path)).alter.set_table_properties({"delta.logRetentionDuration": "interval 7 days"})
    land(table, Change({"a": 1}, {}, [file(tmp_path, "f", 1)]))
    assert rows(tmp_path) == [1]


def test_no_table_and_none_may_be_created(tmp_path):
    with pytest.raises(NotATable, match="auto_create_table"):
        open_table(TableSpec(str(tmp_path / "none"), SCHEMA), create=False)
    assert not (tmp_path / "none").exists()


def test_a_table_is_created_as_declared(tmp_path):
    schema = pa.schema([pa.field("id", pa.string(), nullable=False), pa.field("day", pa.date32())])
    spec = TableSpec(str(tmp_path), schema, ("day",), {"delta.logRetentionDuration": "interval 3 days"})
    table = open_table(spec, create=True)
    made = DeltaTable(str(tmp_path))
    assert [(f.name, f.nullable) for f in made.schema().fields] == [("id", False), ("day", True)]
    assert made.metadata().partition_columns == ["day"]
    assert made.metadata().configuration["delta.logRetentionDuration"] == "interval 3 days"
    assert table.version == 0


@pytest.mark.parametrize(
    ("theirs", "partitions", "words"),
    [
        (pa.schema([pa.field("n", pa.int32())]), (), "n: table integer, sink long"),
        (pa.schema([pa.field("n", pa.int64(), nullable=False)]), (), "n: table long not null, sink long"),
        (pa.schema([pa.field("m", pa.int64())]), (), "m: table long, sink has none"),
        (pa.schema([pa.field("n", pa.list_(pa.int64()))]), (), "n: table array<long>, sink long"),
    ],
)
def test_a_table_with_other_columns_is_an_error_that_shows_both_sides(tmp_path, theirs, partitions, words):
    DeltaTable.create(str(tmp_path), schema=theirs, partition_by=list(partitions))
    with pytest.raises(SchemaMismatch, match=words):
        open_at(tmp_path)


def test_other_partition_columns_are_an_error(tmp_path):
    both = pa.schema([pa.field("n", pa.int64()), pa.field("d", pa.date32())])
    DeltaTable.create(str(tmp_path), schema=both, partition_by=["d"])
    with pytest.raises(SchemaMismatch, match=r"partition columns: table \['d'\], sink \[\]"):
        open_table(TableSpec(str(tmp_path), both), create=True)


def test_the_order_of_columns_does_not_matter(tmp_path):
    theirs = pa.schema([pa.field("b", pa.string()), pa.field("a", pa.string())])
    DeltaTable.create(str(tmp_path), schema=theirs)
    ours = pa.schema([pa.field("a", pa.string(), nullable=False), pa.field("b", pa.string())])
    open_table(TableSpec(str(tmp_path), ours), create=True)


def test_log_checkpoints_come_at_the_tables_interval(tmp_path):
    table = open_at(tmp_path, properties={"delta.checkpointInterval": "3"})
    due = []
    for n in range(1, 7):
        before = table.version
        land(table, Change({"a": n}, {}))
        due.append(table.checkpoint_due(before))
    assert due == [False, False, True, False, False, True]
    table.checkpoint()
    assert (tmp_path / "_delta_log" / f"{6:020d}.checkpoint.parquet").exists()
    again = open_at(tmp_path)
    assert again.txns == {"a": 6}


def test_delta_spark_takes_a_table_with_a_required_column_and_a_feature(tmp_path, spark):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("at", pa.timestamp("us"))])
    open_table(TableSpec(str(tmp_path), schema), create=True)
    spark.sql(f"INSERT INTO delta.`{tmp_path}` VALUES (1, TIMESTAMP_NTZ '2026-01-01 00:00:00')")
    assert spark.read.format("delta").load(str(tmp_path)).count() == 1
    open_table(TableSpec(str(tmp_path), schema), create=True)
