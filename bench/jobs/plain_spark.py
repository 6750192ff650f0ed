"""What one writes by hand with PySpark: readStream, from_json, writeStream to Delta. Same usage."""

from __future__ import annotations

import json
import sys
import time

from bench.events import DDL
from rivermouth.spark import session


def main(servers: str, topic: str, table: str, epoch_size: int, epochs: int) -> None:
    from pyspark.sql.functions import col, from_json

    # The same JVM, jars and tuning as ours; only the Python worker daemon does not matter here.
    spark = session.start("plain", conf={"spark.sql.session.timeZone": "UTC"})
    ready = time.time()
    query = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", epoch_size)
        .load()
        .select(from_json(col("value").cast("string"), DDL, {"mode": "PERMISSIVE"}).alias("event"))
        .select("event.*")
        .writeStream.format("delta")
        .option("checkpointLocation", table + "_checkpoint")
        .outputMode("append")
    )
    query = query.trigger(availableNow=True) if not epochs else query.trigger(processingTime="0 seconds")
    running = query.start(table)
    seen: dict[int, float] = {}
    durations: dict[int, float] = {}
    while running.isActive and (not epochs or len(durations) < epochs):
        for progress in running.recentProgress:
            if progress["numInputRows"]:
                seen.setdefault(progress["batchId"], time.time())
                durations[progress["batchId"]] = progress["durationMs"]["triggerExecution"] / 1000
        time.sleep(0.02)
    end = time.time()
    running.stop()
    for progress in running.recentProgress:
        if progress["numInputRows"]:
            seen.setdefault(progress["batchId"], end)
            durations[progress["batchId"]] = progress["durationMs"]["triggerExecution"] / 1000
    print(
        json.dumps(
            {
                "ready": ready,
                "commits": [seen[batch] for batch in sorted(seen)],
                "durations": [durations[batch] for batch in sorted(durations)],
            }
        )
    )
    session.stop(spark)


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]), int(sys.argv[5]))
