"""Interleavings that a reviewer thought of: each is forced at the one moment where it would hurt."""

from __future__ import annotations

import shutil

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from rivermouth import faults
from rivermouth.delta import dead_letters, marks
from rivermouth.delta import table as tables
from rivermouth.errors import Fenced, ProgressLost, ReplayPending, TableRestored
from rivermouth.pipeline import replay, replay_letters, reset
from rivermouth.pipeline import rewind as rewinds
from rivermouth.pipeline.run import run
from rivermouth.records import Partition
from rivermouth.spark.engine import JvmOnly

ALL = Partition("numbers", 0)
SINK = {"schema": "n BIGINT NOT NULL", "batch_size": 100, "max_batch_size": 100}


def source(count, broken=0.1):
    return {"connector": "generator", "config": {"topics": ["numbers"], "count": count, "broken": broken}}


def uri(lake, name="t"):
    return str(lake.folder / name)


def landed(lake):
    rows, distinct = lake.query("SELECT count(n), count(DISTINCT n) FROM {t}")[0]
    dead, dead_distinct = lake.query('SELECT count(*), count(DISTINCT "offset") FROM {t_dead_letters}')[0]
    assert (rows, dead) == (distinct, dead_distinct)
    return rows + dead


def version_of_epoch(lake, epoch):
    notes = {c["version"]: c.get("userMetadata", "") for c in DeltaTable(uri(lake)).history()}
    return next(v for v, note in notes.items() if f'"epoch":{epoch},"offsets"' in note)


def test_an_owner_that_slept_through_a_log_clean_up_sees_a_claim_of_that_very_moment(
    lake, opened, monkeypatch
):
    config = lake.config(source(400), {"t": SINK})
    first = opened(config)
    first.claim()
    first.run_epoch({ALL: 100})
    for days in (31, 32, 33):
        DeltaTable(uri(lake)).alter.set_table_properties(
            {"delta.logRetentionDuration": f"interval {days} days"}
        )
    DeltaTable(uri(lake)).create_checkpoint()
    newest = DeltaTable(uri(lake)).version()
    for file in (lake.folder / "t" / "_delta_log").glob("*.json"):
        if int(file.stem) < newest:
            file.unlink()
    real, second = tables.DeltaTable, []

    def overtaken(address, *more, **options):
        if not second:
            monkeypatch.setattr(tables, "DeltaTable", real)
            second.append(opened(config))
            second[0].claim()
            second[0].run_epoch({ALL: 200})
        return real(address, *more, **options)

    monkeypatch.setattr(tables, "DeltaTable", overtaken)
    with pytest.raises(Fenced):
        first.run_epoch({ALL: 200})
    assert second[0].position == {ALL: 200}
    assert landed(lake) == 200


def test_a_rewind_that_is_overtaken_leaves_the_other_owners_dead_letters(lake, opened, monkeypatch):
    config = lake.config(source(300, 0.2), {"t": {**SINK, "on_restore": "rewind"}})
    run(config, once=True, spark=lake.spark)
    DeltaTable(uri(lake)).restore(version_of_epoch(lake, 1))
    first, real, other = opened(config), rewinds.as_restored, []

    def overtaken(*arguments):
        found = real(*arguments)
        if not other:
            other.append(opened(config))
            other[0].claim()
            other[0].run_epoch({ALL: 300})
        return found

    monkeypatch.setattr(rewinds, "as_restored", overtaken)
    first.claim()
    assert first.position == {ALL: 300}
    assert landed(lake) == 300


def test_an_overtaken_replay_of_dead_letters_leaves_the_other_ones_notes(lake, opened):
    config = lake.config(source(100, 0.5), {"t": SINK})
    run(config, once=True, spark=lake.spark)
    first, second = opened(config, replay_letters.PART), opened(config, replay_letters.PART)
    for sink in (first, second):
        sink.table.refresh()
        sink.take_over(replay_letters.PART, lambda seen: {}, finish=lambda seen: None)
    note = lake.folder / "t_dead_letters" / "_rivermouth" / "test" / "t" / "replays" / str(second.generation)
    note.mkdir(parents=True)
    (note / "a.parquet").touch()
    marks.clear(first.dead_letter_uri, first.ids, first.generation)
    assert (note / "a.parquet").exists()


@pytest.mark.parametrize(("policy", "expected"), [("rewind", 300), ("continue", 100)])
def test_a_table_replaced_in_its_own_log_is_recognised(lake, statuses, policy, expected):
    """As CREATE OR REPLACE TABLE does: the log goes on, and with it the progress, but the rows are gone."""
    lake.run(source(200), {"t": SINK})
    schema = DeltaTable(uri(lake)).schema()
    DeltaTable.create(uri(lake), schema=schema, mode="overwrite")
    seen = statuses(lake.run(source(300), {"t": SINK}))["t"]
    assert (seen.phase, seen.last_error.code) == ("failed", "TableRestored")
    assert "replaced by another one" in seen.last_error.message
    if policy == "continue":
        DeltaTable(uri(lake, "t_dead_letters")).delete()
    keys = {**SINK, "on_restore": policy}
    seen = statuses(lake.run(source(300), {"t": keys}))["t"]
    assert seen.phase == "stopped"
    assert landed(lake) == expected


def test_a_replay_that_was_broken_off_before_a_restore_is_not_gone_on_with(lake, opened):
    config = lake.config(source(300, 0), {"t": {**SINK, "on_restore": "continue"}})
    run(config, once=True, spark=lake.spark)
    before = DeltaTable(uri(lake)).version()
    sink = opened(config, replay.PART)
    wanted = replay.find_range(sink, "earliest", None)
    replay.begin(sink, wanted)
    assert not replay.run(sink, wanted, iter([False, True]).__next__, lambda position: None)
    DeltaTable(uri(lake)).restore(before)
    again = opened(config, replay.PART)
    with pytest.raises(TableRestored, match="has not dealt with that"):
        replay.begin(again, wanted)
    run(config, once=True, spark=lake.spark)
    again.table.refresh()
    with pytest.raises(ReplayPending, match="set back"):
        replay.begin(again, replay.unfinished(again))
    replay.begin(again, wanted, abandon=True)
    assert again.position == {ALL: 0}


def test_a_rewind_makes_letters_bad_again_whose_events_it_took_away(lake, kafka, opened):
    topic = kafka.create_topic()
    kafka.produce(topic, [b'{"n": 1}', b'{"n": 2, "m": 1}'])
    described = {
        "connector": "kafka",
        "config": {"bootstrap_servers": kafka.bootstrap_servers, "topics": [topic]},
    }
    lake.run(described, {"t": {"schema": "n BIGINT NOT NULL, m BIGINT NOT NULL"}})
    lake.spark.sql(f"ALTER TABLE delta.`{lake.folder / 't'}` ALTER COLUMN m DROP NOT NULL")
    keys = {"schema": "n BIGINT NOT NULL, m BIGINT", "on_restore": "rewind"}
    config = lake.config(described, {"t": keys})
    run(config, once=True, spark=lake.spark)
    before = DeltaTable(uri(lake)).version()
    replay_letters.replay(opened(config, replay_letters.PART))
    assert lake.query("SELECT count(*) FROM {t}") == [(2,)]
    DeltaTable(uri(lake)).restore(before)
    run(config, once=True, spark=lake.spark)
    assert lake.query("SELECT count(*), count(replayed) FROM {t_dead_letters}") == [(1, 0)]
    replay_letters.replay(opened(config, replay_letters.PART))
    assert lake.query("SELECT count(*), count(DISTINCT n) FROM {t}") == [(2, 2)]


def test_a_reset_after_a_restore_names_every_partition(lake, opened):
    described = {
        "connector": "generator",
        "config": {"topics": ["numbers"], "count": 300, "partitions": 2},
    }
    config = lake.config(described, {"t": SINK})
    run(config, once=True, spark=lake.spark)
    DeltaTable(uri(lake)).restore(version_of_epoch(lake, 1))
    sink = opened(config, engine=JvmOnly())
    with pytest.raises(TableRestored, match="numbers/1"):
        reset.moves(sink, {"numbers": {0: 50}})
    reset.reset(sink, reset.moves(sink, {"numbers": {0: 50, 1: 50}}))
    again = opened(config)
    again.claim()
    assert set(again.position.values()) == {50}


def test_letters_can_be_replayed_again_when_the_log_has_forgotten_the_last_time(lake, kafka, opened):
    topic = kafka.create_topic()
    kafka.produce(topic, [b'{"n": 1}', b"{"])
    described = {
        "connector": "kafka",
        "config": {"bootstrap_servers": kafka.bootstrap_servers, "topics": [topic]},
    }
    lake.run(described, {"t": {"schema": "n BIGINT NOT NULL, m BIGINT NOT NULL"}})
    lake.spark.sql(f"ALTER TABLE delta.`{lake.folder / 't'}` ALTER COLUMN m DROP NOT NULL")
    config = lake.config(described, {"t": {"schema": "n BIGINT NOT NULL, m BIGINT"}})
    replay_letters.replay(opened(config, replay_letters.PART))
    table = DeltaTable(uri(lake))
    table.create_checkpoint()
    for file in (lake.folder / "t" / "_delta_log").glob("*.json"):
        if int(file.stem) < table.version():
            file.unlink()
    assert replay_letters.replay(opened(config, replay_letters.PART)).read == 1


class TestOwedDeadLetters:
    """A crash between the two commits, and then something happens to the files."""

    @pytest.fixture
    def owed(self, lake, opened, monkeypatch):
        config = lake.config(source(100, 0.5), {"t": SINK})
        sink = opened(config)
        sink.claim()
        with monkeypatch.context() as patch:
            patch.setattr(dead_letters, "land", lambda *arguments: None)
            sink.run_epoch({ALL: 100})
        return config

    def test_they_are_vacuumed_away(self, lake, opened, owed):
        DeltaTable(uri(lake, "t_dead_letters")).vacuum(
            retention_hours=0, dry_run=False, enforce_retention_duration=False, full=True
        )
        with pytest.raises(ProgressLost, match="are gone"):
            opened(owed).claim()

    def test_the_tables_are_elsewhere_on_the_next_machine(self, lake, opened, owed):
        moved = lake.folder / "moved"
        moved.mkdir()
        for name in ("t", "t_dead_letters"):
            shutil.move(lake.folder / name, moved / name)
        config = lake.config(source(100, 0.5), {"t": {**SINK, "table_uri": str(moved / "t")}})
        opened(config).claim()
        there = DeltaTable(str(moved / "t")).count() + DeltaTable(str(moved / "t_dead_letters")).count()
        assert there == 100


def test_a_log_that_fails_while_it_is_read_anew_is_not_taken_for_another(tmp_path, monkeypatch):
    address = str(tmp_path / "t")
    rows = pa.table({"n": pa.array([1], pa.int64())})
    write_deltalake(address, rows)
    table = tables.Table(tables.TableSpec(address, rows.schema), DeltaTable(address))
    for _ in range(3):
        write_deltalake(address, rows, mode="append")
    DeltaTable(address).create_checkpoint()
    for version in range(3):
        (tmp_path / "t" / "_delta_log" / f"{version:020d}.json").unlink()
    real = type(table.log)._checkpoint_txns

    def broken(self, name):
        real(self, name)
        raise OSError("the disk does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(type(table.log), "_checkpoint_txns", broken)
        with pytest.raises(OSError, match="does not answer"):
            table.refresh()
    assert table.refresh() is None
    assert table.version == 3


def test_a_replay_does_not_go_further_than_a_sink_that_was_set_back(lake, opened):
    config = lake.config(source(300, 0), {"t": SINK})
    run(config, once=True, spark=lake.spark)
    sink = opened(config, replay.PART)
    wanted = replay.find_range(sink, "earliest", None)
    replay.begin(sink, wanted)
    owner = opened(config, engine=JvmOnly())
    reset.reset(owner, reset.moves(owner, {"numbers": {0: 100}}))
    again = opened(config, replay.PART)
    with pytest.raises(ReplayPending, match="further than the sink"):
        replay.begin(again, replay.unfinished(again))


class TestMarksAfterARestore:
    """Letters were repaired and replayed, and then a RESTORE took their events away."""

    @pytest.fixture
    def repaired(self, lake):
        config = lake.config(source(100, 0.5), {"t": {**SINK, "on_restore": "rewind"}})
        run(config, once=True, spark=lake.spark)
        value = """arrow_cast(concat('{"n": ', cast(offset as varchar), '}'), 'Binary')"""
        DeltaTable(uri(lake, "t_dead_letters")).update(updates={"value": value})
        return config, DeltaTable(uri(lake)).version()

    def replayed(self, lake):
        return lake.query("SELECT count(*), count(replayed) FROM {t_dead_letters}")[0]

    def test_a_crash_before_the_marks_leaves_none_to_set(self, lake, opened, repaired, monkeypatch):
        config, before = repaired
        monkeypatch.setenv(faults.VARIABLE, "before-dead-letters=fail@1")
        faults._counts.clear()
        with pytest.raises(faults.Fault):
            replay_letters.replay(opened(config, replay_letters.PART))
        monkeypatch.delenv(faults.VARIABLE)
        DeltaTable(uri(lake)).restore(before)
        run(config, once=True, spark=lake.spark)
        letters, _ = self.replayed(lake)
        result = replay_letters.replay(opened(config, replay_letters.PART))
        assert result.written == letters > 0
        assert lake.query("SELECT count(n), count(DISTINCT n) FROM {t}") == [(100, 100)]
        assert self.replayed(lake) == (letters, letters)

    def test_a_restore_to_a_version_that_has_the_events_leaves_the_marks_to_set(
        self, lake, opened, repaired, monkeypatch
    ):
        config, _ = repaired
        monkeypatch.setenv(faults.VARIABLE, "before-dead-letters=fail@1")
        faults._counts.clear()
        with pytest.raises(faults.Fault):
            replay_letters.replay(opened(config, replay_letters.PART))
        monkeypatch.delenv(faults.VARIABLE)
        having = DeltaTable(uri(lake)).version()
        rows = pa.table(
            {"n": pa.array([7000], pa.int64())}, schema=pa.schema([pa.field("n", pa.int64(), False)])
        )
        write_deltalake(uri(lake), rows, mode="append")
        DeltaTable(uri(lake)).restore(having)
        run(config, once=True, spark=lake.spark)
        assert replay_letters.replay(opened(config, replay_letters.PART)).read == 0
        letters, marked = self.replayed(lake)
        assert letters == marked > 0
        assert lake.query("SELECT count(n), count(DISTINCT n) FROM {t}") == [(100, 100)]

    def test_a_reset_takes_them_back(self, lake, opened, repaired):
        config, before = repaired
        replay_letters.replay(opened(config, replay_letters.PART))
        assert self.replayed(lake)[1] > 0
        DeltaTable(uri(lake)).restore(before)
        sink = opened(config, engine=JvmOnly())
        reset.reset(sink, reset.moves(sink, "latest"))
        assert self.replayed(lake)[1] == 0
