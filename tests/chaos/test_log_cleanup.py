"""Log checkpoints and log clean-up between any two commits, by delta-rs and by delta-spark."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.chaos import oracle
from tests.chaos.river import River

pytestmark = pytest.mark.slow

Tool = Callable[[River, Path], None]


def delta_rs(_river: River, table: Path) -> None:
    DeltaTable(str(table)).create_checkpoint()
    DeltaTable(str(table)).cleanup_metadata()


def delta_spark(river: River, table: Path) -> None:
    jvm = river.spark._jvm
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(river.spark._jsparkSession, str(table))
    nothing = jvm.scala.Option.empty()
    log.checkpointAndCleanUpDeltaLog(log.update(False, nothing, nothing), nothing)


def delta_spark_in_parts(river: River, table: Path) -> None:
    """A checkpoint of several files, as large tables have them."""
    river.spark.conf.set("spark.databricks.delta.checkpoint.partSize", "3")
    try:
        delta_spark(river, table)
    finally:
        river.spark.conf.unset("spark.databricks.delta.checkpoint.partSize")


def delta_spark_v2(river: River, table: Path) -> None:
    """A checkpoint of the newer kind, with files beside it."""
    for policy, write in (("v2", delta_spark), ("classic", None)):
        river.spark.sql(
            f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('delta.checkpointPolicy' = '{policy}')"
        )
        if write:
            write(river, table)


TOOLS: list[Tool] = [delta_rs, delta_spark, delta_spark_in_parts, delta_spark_v2]


def expire(table: Path) -> None:
    """Let all that is in the log be two months old: older than any tool keeps it."""
    long_ago = time.time() - 60 * 24 * 3600
    for path in (table / "_delta_log").iterdir():
        if path.is_file():
            os.utime(path, (long_ago, long_ago))


def test_progress_survives_a_log_that_is_cleaned_between_any_two_commits(river: River, chance: Random):
    """The owner goes on after each, and so does a new start, which finds its progress in the checkpoint."""
    notes: dict[str, dict[str, Any]] = {}  # also those that a clean-up removes

    def clean(tool: Tool) -> None:
        print(tool.__name__)
        notes.update({note["nonce"]: note for note in river.log.notes()})
        oldest = river.log.versions()[0]
        for table in (river.table, Path(f"{river.table}_dead_letters")):
            expire(table)
            tool(river, table)
        assert river.log.versions()[0] > oldest, f"{tool.__name__} has cleaned up nothing"

    with river.here() as here:
        for tool in chance.sample(TOOLS, len(TOOLS)):
            river.stream.produce(100)
            here.until(lambda: here.sink.read == river.stream.produced, "the next epoch")
            clean(tool)
    for tool in chance.sample(TOOLS, 2):
        river.stream.produce(100)
        river.finish()
        clean(tool)
    oracle.assert_once("the table", river.stream.good, oracle.events(river.table))
    oracle.assert_once("the dead-letter table", river.stream.bad, oracle.dead_letters(river.table))
    oracle.assert_in_order(list(notes.values()))
    read = sum(note["counts"]["read"] for note in notes.values() if note["kind"] == "epoch")
    assert read == river.stream.produced


def test_progress_survives_checkpoints_at_every_commit_and_no_log_before_them(river: River):
    """The table's own properties ask for it; the clean-up is ours."""
    river.sink["table_properties"] = {
        "delta.checkpointInterval": "1",
        "delta.logRetentionDuration": "interval 0 days",
    }
    for _ in range(4):
        river.stream.produce(50)
        river.finish()
    assert river.log.versions()[0] > 0, "nothing was cleaned up"
    river.check()
