"""Starts and commits on a table with a long log. Usage: SERVERS FOLDER VERSIONS PARTITIONS ROUNDS MANY ONE

Makes two tables through the sink's own code, epoch by epoch, only without a Spark job: one of VERSIONS
versions whose sink has PARTITIONS partitions, and a short one whose sink has one. MANY and ONE are Kafka
topics with as many partitions, to be asked for their offsets.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench import pipelines
from bench.stopwatch import Stopwatch, replaced
from rivermouth.config.model import PipelineConfig
from rivermouth.observe.observer import Observer
from rivermouth.pipeline import sink as sink_module
from rivermouth.pipeline.ownership import Identity
from rivermouth.pipeline.run import make_sink, open_source
from rivermouth.pipeline.sink import Sink
from rivermouth.pipeline.task import Result, Task
from rivermouth.records import Offsets
from rivermouth.spark import session
from rivermouth.spark.engine import Engine

SHORT = 10  # versions of the short table
MOVED = 4  # partitions that have records for an epoch
AROUND = 20  # commits a median is taken of
PAST = 50  # versions after the last log checkpoint, of which a start reads each
TURN = 100  # versions after which the long table gets another owner

Times = dict[str, float]


def main(servers: str, folder: str, versions: int, partitions: int, rounds: int, many: str, one: str) -> None:
    began = time.perf_counter()
    spark = session.start("bench")
    told: dict[str, Any] = {"spark": time.perf_counter() - began}
    engine = Engine(spark.newSession())
    long_table = generated(Path(folder), "long", partitions)
    short_table = generated(Path(folder), "short", 1)
    marks = [versions // 100, versions // 10, versions]
    made = grow(long_table, engine, versions + PAST, in_turns=True)
    grow(short_table, engine, SHORT)
    both: dict[str, Callable[[], Times]] = {
        "long": lambda: start(long_table, engine),
        "short": lambda: start(short_table, engine),
    }
    told["starts"] = by_turns(both, rounds)
    told["by version"] = [around(made, "version", mark) for mark in marks]
    stretches = sorted({AROUND // 2, versions // 100, versions // 20})
    made = grow(short_table, engine, SHORT + 2 * (rounds + 1) + stretches[-1] + AROUND)
    told["by epoch"] = [around(made, "epoch", stretch) for stretch in stretches]
    topics = {topic: kafka(Path(folder), servers, topic) for topic in (many, one)}
    told["kafka"] = by_turns({t: lambda c=c: ask(c, engine) for t, c in topics.items()}, rounds)
    session.stop(spark)
    print(json.dumps([told]))


def generated(folder: Path, name: str, partitions: int) -> PipelineConfig:
    source = {"topics": ["numbers"], "partitions": partitions}
    keys = {"table_uri": str(folder / name), "schema": "n BIGINT, ts TIMESTAMP"}
    return pipelines.make(folder / f"{name}.yaml", "generator", source, keys)


def kafka(folder: Path, servers: str, topic: str) -> PipelineConfig:
    source = {"bootstrap_servers": servers, "topics": [topic]}
    return pipelines.make(folder / f"{topic}.yaml", "kafka", source, {"table_uri": str(folder / topic)})


def opened(config: PipelineConfig, engine: Engine) -> Sink:
    observer = Observer(config.pipeline, {pipelines.SINK: config.sinks[pipelines.SINK].config.flush_interval})
    return make_sink(config, Identity.new(config.pipeline, pipelines.SINK), engine, observer)


def start(config: PipelineConfig, engine: Engine) -> Times:
    """What a start does once Spark is up: open both tables, claim, look at the source."""
    began = time.perf_counter()
    sink = opened(config, engine)
    at_open = time.perf_counter()
    sink.claim()
    at_claim = time.perf_counter()
    sink.look()
    at_look = time.perf_counter()
    sink.source.close()
    return {"open": at_open - began, "claim": at_claim - at_open, "look": at_look - at_claim}


def ask(config: PipelineConfig, engine: Engine) -> Times:
    """What a start asks of Kafka, with a client that is made for it."""
    source = open_source(config, pipelines.SINK, engine, lambda code, message: None)
    began = time.perf_counter()
    known = source.resolve({})
    at_resolve = time.perf_counter()
    source.bounds(known)
    at_bounds = time.perf_counter()
    source.bounds(known)
    again = time.perf_counter()
    source.close()
    return {"resolve": at_resolve - began, "bounds": at_bounds - at_resolve, "again": again - at_bounds}


def by_turns(jobs: dict[str, Callable[[], Times]], rounds: int) -> dict[str, Times]:
    """The medians of each job, the jobs taking turns; a first round is not counted."""
    seen: dict[str, list[Times]] = {name: [] for name in jobs}
    for _ in range(rounds + 1):
        for name, job in jobs.items():
            seen[name].append(job())
    return {
        name: {part: statistics.median(times[part] for times in runs[1:]) for part in runs[0]}
        for name, runs in seen.items()
    }


def grow(config: PipelineConfig, engine: Engine, versions: int, *, in_turns: bool = False) -> list[Times]:
    """Run epochs up to a version: all of a sink's own code, but one row in place of the Spark job.

    All by one owner, or by new ones in turns, each of which opens the table again. Of each epoch its number
    among the owner's, the version, and the seconds of the commit and of the log checkpoint after it.
    """
    made: list[Times] = []
    while not made or made[-1]["version"] < versions:
        sink = opened(config, engine)
        sink.claim()
        # A turn begins before the log checkpoint, so that a median around it is one owner's.
        end = sink.table.version + TURN - (sink.table.version + AROUND // 2 + 2) % TURN
        made += reign(sink, min(end, versions) if in_turns else versions)
        sink.source.close()
        if made[-1]["version"] % 1000 < TURN:
            print(f"version {made[-1]['version']}", file=sys.stderr)
    return made


def reign(sink: Sink, versions: int) -> list[Times]:
    """The epochs of one owner."""
    watch, partitions = Stopwatch(), sorted(sink.position)
    made: list[Times] = []
    places = [(sink.hold, "commit"), (sink.table, "checkpoint")]
    with replaced(sink_module, "execute", one_row), watch.on(*places):
        while sink.table.version < versions:
            first = sink.progress.epoch * MOVED
            moved = {partitions[(first + n) % len(partitions)] for n in range(MOVED)}
            sink.run_epoch({p: sink.position[p] + 1 for p in moved})
            taken = watch.take()
            checkpoint = taken.get("commit/checkpoint", 0.0)
            told = {"epoch": len(made) + 1, "version": sink.table.version, "checkpoint": checkpoint}
            made.append({**told, "commit": taken["commit"] - checkpoint})
    return made


def one_row(_source: Any, start: Offsets, end: Offsets, task: Task, **_options: Any) -> Result:
    """Stands for the Spark job of an epoch: it writes a file as a task would."""
    writer = task.events.writer("00000")
    number = sum(end.values())
    writer.write(pa.RecordBatch.from_pylist([{"n": number}], schema=task.events.schema))
    return Result(1, writer.close(), [], {}, None)


def around(made: list[Times], key: str, number: int) -> Times:
    """The median of the commits around a version or epoch, and the log checkpoint in their midst."""
    near = [times for times in made if number - AROUND // 2 <= times[key] < number + AROUND // 2]
    middle = {part: statistics.median(times[part] for times in near) for part in near[0]}
    return {**middle, key: number, "checkpoint": max(times["checkpoint"] for times in near)}


if __name__ == "__main__":
    main(*sys.argv[1:3], *map(int, sys.argv[3:6]), *sys.argv[6:8])
