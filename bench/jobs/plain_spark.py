"""What one writes by hand with PySpark: from_json and writeStream to Delta. Usage as rivermouth.py."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from bench.events import DDL
from rivermouth.spark import session


def main(servers: str, topic: str, table: str, passes: int, epoch_size: int, epochs: int) -> None:
    # The same JVM, jars and settings as ours: only the job differs.
    spark = session.start("plain")
    told = [land(spark, servers, topic, f"{table}-{n}", epoch_size, epochs) for n in range(passes)]
    session.stop(spark)
    print(json.dumps(told))


def land(
    spark: Any, servers: str, topic: str, table: str, epoch_size: int, epochs: int
) -> dict[str, float | list[float]]:
    from pyspark.sql.functions import col, from_json

    start = time.time()
    writer = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", epoch_size)
        .load()
        .select(from_json(col("value").cast("string"), DDL).alias("event"))
        .select("event.*")
        .writeStream.format("delta")
        .option("checkpointLocation", table + "_checkpoint")
        .outputMode("append")
    )
    trigger = {"availableNow": True} if not epochs else {"processingTime": "0 seconds"}
    query = writer.trigger(**trigger).start(table)
    commits: dict[int, float] = {}
    durations: dict[int, float] = {}

    def look() -> None:
        for progress in query.recentProgress:
            if progress["numInputRows"]:
                commits.setdefault(progress["batchId"], time.time())
                durations[progress["batchId"]] = progress["durationMs"]["triggerExecution"] / 1000

    while query.isActive and not (epochs and len(commits) >= epochs):
        look()
        time.sleep(0.02)
    look()
    query.stop()
    return {
        "start": start,
        "commits": [commits[n] for n in sorted(commits)],
        "durations": [durations[n] for n in sorted(durations)],
    }


if __name__ == "__main__":
    main(*sys.argv[1:4], *map(int, sys.argv[4:7]))
