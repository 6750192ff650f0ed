"""A session as pipelines use it: real JVM, real workers."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import psutil
import pytest

from rivermouth.errors import SetupError
from rivermouth.spark import session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from tests.services.kafka import Broker


def _probe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import sys

    import pyarrow as pa

    for batch in batches:
        facts = [
            f"archives={[entry for entry in sys.path if entry.endswith(('.zip', '.jar'))]}",
            f"python={sys.executable}",
            f"cpu={pa.cpu_count()}",
            f"io={pa.io_thread_count()}",
            f"formats={'rivermouth.formats' in sys.modules}",
            f"rows<=50000={batch.num_rows <= 50_000}",
        ]
        yield pa.RecordBatch.from_pydict({"fact": facts})


def test_workers_come_from_our_daemon(spark: SparkSession) -> None:
    rows = spark.range(0, 120_000, 1, 1).mapInArrow(_probe, "fact string").distinct().collect()
    assert {row.fact for row in rows} == {
        "archives=[]",
        f"python={sys.executable}",
        "cpu=1",
        "io=1",
        "formats=True",
        "rows<=50000=True",
    }


def _fail_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import os

    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    if context.attemptNumber() == 0:
        os._exit(11)  # as a crash in native code would
    yield from batches


def test_a_task_whose_worker_dies_is_tried_again(spark: SparkSession) -> None:
    assert spark.range(0, 10, 1, 2).mapInArrow(_fail_once, "id long").count() == 10


def test_spark_reads_kafka(spark: SparkSession, kafka: Broker) -> None:
    topic = kafka.create_topic(partitions=2)
    kafka.produce(topic, [b"a", None, b"c"])
    frame = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", kafka.bootstrap_servers)
        .option("subscribe", topic)
        .load()
    )
    assert sorted((row.value or b"") for row in frame.select("value").collect()) == [b"", b"a", b"c"]


def test_spark_merges_into_a_delta_table(spark: SparkSession, tmp_path: Path) -> None:
    table = f"delta.`{tmp_path / 'table'}`"
    spark.sql(f"CREATE TABLE {table} (id BIGINT, word STRING) USING delta")
    spark.sql(f"INSERT INTO {table} VALUES (1, 'one'), (2, 'two')")
    spark.sql(
        f"MERGE INTO {table} t USING (SELECT 2L id, 'zwei' word UNION ALL SELECT 3L, 'drei') s "
        "ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    rows = spark.sql(f"SELECT id, word FROM {table} ORDER BY id").collect()
    assert [(row.id, row.word) for row in rows] == [(1, "one"), (2, "zwei"), (3, "drei")]


def test_each_thread_has_a_fair_pool_of_its_own(spark: SparkSession) -> None:
    context = spark.sparkContext
    seen: dict[str, str | None] = {}

    def work(name: str) -> None:
        context.setLocalProperty("spark.scheduler.pool", name)
        spark.range(5).count()
        seen[name] = context.getLocalProperty("spark.scheduler.pool")

    threads = [threading.Thread(target=work, args=(name,)) for name in ("orders", "clicks")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {"orders": "orders", "clicks": "clicks"}
    pools = context._jsc.sc().getAllPools()
    weights = {pools.apply(number).name(): pools.apply(number).weight() for number in range(pools.size())}
    assert weights["orders"] == weights["clicks"] == 1
    assert context._jsc.sc().getSchedulingMode().toString() == "FAIR"


def test_a_signal_to_the_whole_group_does_not_end_the_jvm(spark: SparkSession) -> None:
    (jvm,) = [child for child in psutil.Process().children() if "SparkSubmit" in " ".join(child.cmdline())]
    for blow in (signal.SIGTERM, signal.SIGINT):
        jvm.send_signal(blow)
    assert spark.range(3).count() == 3
    assert jvm.is_running() and jvm.status() != psutil.STATUS_ZOMBIE


def test_secrets_are_not_on_the_command_line_of_the_jvm() -> None:
    script = (
        "import psutil; from rivermouth.spark import session\n"
        "spark = session.start('s', 'local[1]', {'spark.driver.memory': '1g', 'spark.hadoop.key': 'hush'})\n"
        "lines = [' '.join(child.cmdline()) for child in psutil.Process().children(recursive=True)]\n"
        "assert lines and not any('hush' in line for line in lines), lines\n"
        "assert spark.conf.get('spark.hadoop.key') == 'hush'\n"
        "session.stop(spark)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_jvm_that_cannot_start_says_why() -> None:
    script = (
        "from rivermouth.spark import session\n"
        "session.start('s', 'local[1]', {'spark.driver.extraJavaOptions': '-XX:MaxMetaspaceSize=wrong'})\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "SetupError: the JVM ended with code 1 before Spark was up" in done.stderr
    assert "MaxMetaspaceSize=wrong" in done.stderr


def test_a_second_session_in_one_process_is_refused(spark: SparkSession) -> None:
    with pytest.raises(SetupError, match="already has a Spark session"):
        session.start("second")
