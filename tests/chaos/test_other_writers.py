"""Others write to the table while a pipeline runs: they append, compact, vacuum, alter, drop."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from contextlib import ExitStack
from random import Random

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.chaos import oracle
from tests.chaos.river import River
from tests.chaos.stream import Stream
from tests.services.kafka import Broker

pytestmark = pytest.mark.slow


def append(river: River) -> None:
    schema = pa.schema([pa.field("n", pa.int64(), nullable=False)])
    write_deltalake(str(river.table), pa.table({"n": [-1]}, schema=schema), mode="append")


def compact_with_delta_rs(river: River) -> None:
    DeltaTable(str(river.table)).optimize.compact()


def compact_with_delta_spark(river: River) -> None:
    river.spark.sql(f"OPTIMIZE delta.`{river.table}`")


def vacuum_with_delta_rs(river: River) -> None:
    old = left_over(river)
    DeltaTable(str(river.table)).vacuum(dry_run=False, full=True)
    assert not os.path.exists(old)


def vacuum_with_delta_spark(river: River) -> None:
    old = left_over(river)
    river.spark.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", "2")  # not 10,000 tasks
    river.spark.sql(f"VACUUM delta.`{river.table}`")
    assert not os.path.exists(old)


def left_over(river: River) -> str:
    """A data file that some task left two weeks ago and no commit refers to: it is for vacuum to remove."""
    path = river.table / "part-of-a-failed-task.parquet"
    shutil.copyfile(next(river.table.glob("*.parquet")), path)
    two_weeks_ago = time.time() - 14 * 24 * 3600
    os.utime(path, (two_weeks_ago, two_weeks_ago))
    return str(path)


def set_a_property_with_delta_rs(river: River) -> None:
    DeltaTable(str(river.table)).alter.set_table_properties(
        {"delta.logRetentionDuration": "interval 40 days"}
    )


def set_a_property_with_delta_spark(river: River) -> None:
    river.spark.sql(f"ALTER TABLE delta.`{river.table}` SET TBLPROPERTIES ('team' = 'somebody')")


WRITERS: list[Callable[[River], None]] = [
    append,
    compact_with_delta_rs,
    compact_with_delta_spark,
    vacuum_with_delta_rs,
    vacuum_with_delta_spark,
    set_a_property_with_delta_rs,
    set_a_property_with_delta_spark,
]


def test_others_append_compact_vacuum_and_alter_while_it_runs(river: River, chance: Random):
    """In an order left to chance, with epochs going on all the while."""
    with river.here() as here, river.stream.flowing():
        here.until(lambda: river.log.read() > 0, "the first epoch")
        for writer in chance.sample(WRITERS, len(WRITERS)):
            print(writer.__name__)
            done = river.log.read()
            writer(river)
            here.until(lambda done=done: river.log.read() > done, f"an epoch after {writer.__name__}")
        assert not here.sink.errors, here.sink.last_error
    river.finish()
    river.check()


def test_a_column_added_by_another_stops_the_sink_until_its_config_has_it_too(river: River):
    with river.here() as here, river.stream.flowing():
        here.until(lambda: river.log.read() > 0, "the first epoch")
        river.spark.sql(f"ALTER TABLE delta.`{river.table}` ADD COLUMNS (s STRING)")
        error = here.failure()
    assert error.code == "SchemaMismatch"
    assert "s: table string, sink has none" in error.message
    river.sink["schema"] = "n BIGINT NOT NULL, s STRING"
    river.finish()
    river.check()


def test_four_pipelines_fill_one_table(kafka: Broker, make_river: Callable[..., River]):
    rivers = [
        make_river(Stream(kafka, first=number * 1_000_000), pipeline=f"chaos-{number}") for number in range(4)
    ]
    with ExitStack() as stack:
        running = [stack.enter_context(river.here()) for river in rivers]
        for river in rivers:
            stack.enter_context(river.stream.flowing())
        for here in running:
            here.until(lambda here=here: here.sink.commits >= 5, "epochs of each pipeline")
    for river in rivers:
        river.finish()
    oracle.check(rivers[0].table, *(river.stream for river in rivers))
