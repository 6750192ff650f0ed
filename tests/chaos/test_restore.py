"""Someone sets the table back to an older version with RESTORE."""

from __future__ import annotations

import json

import pytest
from deltalake import DeltaTable

SINK = {"schema": "n BIGINT NOT NULL", "batch_size": 100, "max_batch_size": 100}


def source(count):
    return {"connector": "generator", "config": {"topics": ["numbers"], "count": count, "broken": 0.1}}


def by_delta_rs(lake, version):
    DeltaTable(str(lake.folder / "t")).restore(version)


def by_delta_spark(lake, version):
    lake.spark.sql(f"RESTORE TABLE delta.`{lake.folder / 't'}` TO VERSION AS OF {version}")


def by_delta_spark_and_time(lake, version):
    at = DeltaTable(str(lake.folder / "t")).history()
    when = next(commit["timestamp"] for commit in at if commit["version"] == version)
    # Delta's time of a commit without its own is that of the file.
    stamp = (lake.folder / "t" / "_delta_log" / f"{version:020d}.json").stat().st_mtime
    assert abs(stamp - when / 1000) < 60
    told = lake.spark.sql(f"SELECT cast(timestamp_millis({int(stamp * 1000) + 1}) AS string)").first()[0]
    lake.spark.sql(f"RESTORE TABLE delta.`{lake.folder / 't'}` TO TIMESTAMP AS OF '{told}'")


def totals(lake):
    rows, distinct = lake.query("SELECT count(n), count(DISTINCT n) FROM {t}")[0]
    dead, dead_distinct = lake.query('SELECT count(*), count(DISTINCT "offset") FROM {t_dead_letters}')[0]
    return rows, distinct, dead, dead_distinct


def version_of_epoch(lake, epoch):
    """The version of an epoch's commit, found in the log as any reader sees it."""
    for commit in DeltaTable(str(lake.folder / "t")).history():
        note = json.loads(commit.get("userMetadata") or "{}")
        if (note.get("kind"), note.get("epoch")) == ("epoch", epoch):
            return commit["version"]
    raise AssertionError(f"no epoch {epoch}")


RESTORES = [by_delta_rs, by_delta_spark, by_delta_spark_and_time]


def test_the_default_is_to_stop_and_to_say_what_can_be_done(lake, statuses):
    lake.run(source(500), {"t": SINK})
    by_delta_rs(lake, version_of_epoch(lake, 2))
    seen = statuses(lake.run(source(600), {"t": SINK}))["t"]
    assert (seen.phase, seen.last_error.code) == ("failed", "TableRestored")
    assert "rewind" in seen.last_error.message and "offsets reset" in seen.last_error.message
    seen = statuses(lake.run(source(600), {"t": SINK}))["t"]  # and again, for nothing was decided
    assert seen.phase == "failed"


@pytest.mark.parametrize("restore", RESTORES)
def test_a_rewind_reads_again_what_the_restore_took_away(lake, restore, statuses):
    lake.run(source(500), {"t": SINK})
    before = totals(lake)
    restore(lake, version_of_epoch(lake, 2))
    assert totals(lake)[0] < before[0]
    keys = {**SINK, "on_restore": "rewind"}
    seen = statuses(lake.run(source(600), {"t": keys}))["t"]
    rows, distinct, dead, dead_distinct = totals(lake)
    assert seen.phase == "stopped"
    assert (rows, dead) == (distinct, dead_distinct)
    assert rows + dead == 600
    assert seen.epoch == 9  # epochs only grow: 5, and 4 more for the offsets 200 to 599
    lake.run(source(700), {"t": keys})  # dealt with: not again
    assert sum(totals(lake)[::2]) == 700


def test_continue_goes_on_without_what_the_restore_took_away(lake):
    lake.run(source(500), {"t": SINK})
    by_delta_rs(lake, version_of_epoch(lake, 2))
    kept = totals(lake)[0]
    lake.run(source(600), {"t": {**SINK, "on_restore": "continue"}})
    rows, distinct, dead, _ = totals(lake)
    between = 'SELECT count(*) FROM {t_dead_letters} WHERE "offset" BETWEEN 200 AND 499'
    lost = 300 - lake.query(between)[0][0]
    assert rows == distinct == 600 - dead - lost
    assert rows > kept


def test_a_restore_while_the_sink_runs_is_met_at_the_next_commit(lake, statuses, monkeypatch):
    """Between two epochs of one owner, and by a RESTORE of a RESTORE."""
    from rivermouth.pipeline import sink as module

    lake.run(source(300), {"t": SINK})
    real, done = module.execute, []

    def restored_meanwhile(*arguments, **more):
        if not done:
            done.append(True)
            by_delta_rs(lake, version_of_epoch(lake, 1))
            by_delta_rs(lake, version_of_epoch(lake, 2))
        return real(*arguments, **more)

    monkeypatch.setattr(module, "execute", restored_meanwhile)
    monkeypatch.setattr("rivermouth.pipeline.decide.FIRST_PAUSE", 0.01)
    seen = statuses(lake.run(source(600), {"t": {**SINK, "on_restore": "rewind"}}))["t"]
    assert seen.phase == "stopped"
    rows, distinct, dead, dead_distinct = totals(lake)
    assert (rows, dead) == (distinct, dead_distinct)
    assert rows + dead == 600


def test_a_new_sink_of_a_restored_table_has_nothing_to_decide(lake, statuses):
    lake.run(source(300), {"t": SINK})
    by_delta_rs(lake, version_of_epoch(lake, 1))
    from rivermouth.pipeline.run import run

    config = lake.config(source(50), {"t": SINK}, pipeline="another")
    seen = statuses(run(config, once=True, spark=lake.spark))["t"]
    assert (seen.phase, seen.read) == ("stopped", 50)
