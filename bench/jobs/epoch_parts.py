"""Where the time of a small epoch goes. Usage: SERVERS FOLDER EPOCHS TOPIC...

Each topic has a sink of its own; the sinks take turns, an epoch of 1,000 records each.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from bench import pipelines
from bench.events import DDL
from bench.stopwatch import Stopwatch, Times
from rivermouth.delta import dead_letters
from rivermouth.observe.observer import Observer
from rivermouth.pipeline import plan
from rivermouth.pipeline import sink as sink_module
from rivermouth.pipeline.ownership import Identity
from rivermouth.pipeline.run import make_sink
from rivermouth.pipeline.sink import Sink
from rivermouth.spark import session
from rivermouth.spark.engine import Engine

RECORDS = 1_000
LEFT_OUT = 20  # the first epochs, while the engine gets warm

# A part and the calls it is made of; what is within another part is taken out of that.
PARTS = {
    "planning": "look",
    "Spark job": "run_epoch/execute",
    "topics looked at again": "run_epoch/identities",
    "commit": "run_epoch/commit",
    "log checkpoint": "run_epoch/commit/checkpoint",
    "dead letters": "run_epoch/land",
    "offsets told to Kafka": "run_epoch/committed",
}


def main(servers: str, folder: str, epochs: int, topics: list[str]) -> None:
    began = time.perf_counter()
    spark = session.start("bench")
    started = time.perf_counter() - began
    sinks = {topic: claimed(spark, servers, topic, Path(folder)) for topic in topics}
    seen: dict[str, list[Times]] = {topic: [] for topic in topics}
    for _ in range(LEFT_OUT + epochs):
        for topic, sink in sinks.items():
            seen[topic].append(epoch(sink))
    for sink in sinks.values():
        sink.source.close()
    session.stop(spark)
    parts = {topic: summed(times[LEFT_OUT:]) for topic, times in seen.items()}
    print(json.dumps([{"spark": started, "parts": parts}]))


def claimed(spark: Any, servers: str, topic: str, folder: Path) -> Sink:
    kafka = {"bootstrap_servers": servers, "topics": [topic]}
    keys = {"table_uri": str(folder / topic), "schema": DDL, "batch_size": RECORDS, "max_batch_size": RECORDS}
    config = pipelines.make(folder / f"{topic}.yaml", "kafka", kafka, keys)
    observer = Observer(config.pipeline, {pipelines.SINK: config.sinks[pipelines.SINK].config.flush_interval})
    identity = Identity.new(config.pipeline, pipelines.SINK)
    sink = make_sink(config, identity, Engine(spark.newSession()), observer)
    sink.claim()
    return sink


def epoch(sink: Sink) -> Times:
    """Plan an epoch and run it, as the loop does; the seconds of its parts."""
    watch = Stopwatch()
    places = [
        (sink, "look"),
        (sink, "run_epoch"),
        (sink_module, "execute"),
        (sink.source, "identities"),
        (sink.hold, "commit"),
        (sink.table, "checkpoint"),
        (dead_letters, "land"),
        (sink.source, "committed"),
    ]
    began = time.perf_counter()
    with watch.on(*places):
        heads = sink.look()
        sink.run_epoch(plan.share(sink.position, heads, RECORDS))
    whole = time.perf_counter() - began
    taken = watch.take()
    parts = {name: taken.get(path, 0.0) for name, path in PARTS.items()}
    parts["commit"] -= parts["log checkpoint"]
    return {**parts, "the rest": whole - sum(parts.values()), "whole": whole}


def summed(epochs: list[Times]) -> dict[str, dict[str, float]]:
    """Of each part the median, and its share of all the time: what is seldom counts in the share alone."""
    whole = sum(times["whole"] for times in epochs)
    return {
        part: {
            "seconds": statistics.median(times[part] for times in epochs),
            "share": sum(times[part] for times in epochs) / whole,
        }
        for part in epochs[0]
    }


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:])
