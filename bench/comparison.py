"""rivermouth, plain PySpark and a plain script, one after the other, on one topic."""

from __future__ import annotations

import shutil
import statistics
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from bench.events import events
from bench.measure import Measured, machine, measure
from bench.tables import ensure_whole
from tests.services.kafka import Broker

JOBS = {
    "rivermouth": "bench.jobs.rivermouth",
    "plain PySpark": "bench.jobs.plain_spark",
    "plain script": "bench.jobs.plain_script",
}
SCRIPT_BATCH = 100_000


def run(broker: Broker, work: Path, count: int, epochs: int, rounds: int) -> None:
    """Print a section for each thing that is compared."""
    fill(broker, count)
    print(f"machine: {machine()}\n")
    throughput(broker, work, count, rounds)
    small_epochs(broker, work, epochs, rounds)


def fill(broker: Broker, count: int) -> None:
    broker.create_named_topic("events", 4)
    broker.produce("events", events(count), config={"compression.type": "lz4", "linger.ms": 50})


def throughput(broker: Broker, work: Path, count: int, rounds: int) -> None:
    """Each job lands the topic twice in one process: on a cold engine, and on a warm one."""
    seen: dict[str, list[list[Landing]]] = {name: [] for name in JOBS}
    for number in range(rounds):
        for name, module in JOBS.items():
            table = work / f"{name.replace(' ', '-')}-{number}"
            size = SCRIPT_BATCH if name == "plain script" else 1_000_000
            done = measure(module, broker.bootstrap_servers, "events", str(table), "2", str(size), "0")
            seen[name].append([Landing.of(done, n, Path(f"{table}-{n}"), count) for n in range(2)])
    for passed, engine in enumerate(("cold: the first job of the process", "warm: the second")):
        print(f"## {count:,} events from four partitions, {engine} (median of {rounds} rounds)\n")
        print("| job | rows/s | of plain PySpark | of the script | CPU s | peak MB | files | commits |")
        print("|---|---|---|---|---|---|---|---|")
        medians = {name: Landing.median([run[passed] for run in runs]) for name, runs in seen.items()}
        for name, landing in medians.items():
            spark, script = (
                landing.rate / medians[other].rate for other in ("plain PySpark", "plain script")
            )
            cells = [f"{landing.rate:,.0f}", f"{spark:.2f}", f"{script:.2f}", f"{landing.cpu:.1f}"]
            cells += [f"{landing.peak:,.0f}", f"{landing.files:.0f}", f"{landing.commits:.0f}"]
            print(f"| {name} | {' | '.join(cells)} |")
        print()


class Landing(NamedTuple):
    """What landing the topic once took."""

    rate: float
    cpu: float
    peak: float
    files: float
    commits: float

    @classmethod
    def of(cls, done: Measured, number: int, table: Path, count: int) -> Landing:
        start, commits = done.said[number]["start"], done.said[number]["commits"]
        ensure_whole(table, count)
        files = len(list(table.rglob("*.parquet"))) - len(list((table / "_delta_log").glob("*.parquet")))
        shutil.rmtree(table)
        seconds, cpu = commits[-1] - start, done.cpu_between(start, commits[-1])
        return cls(count / seconds, cpu, done.peak_bytes / 1e6, files, len(commits))

    @classmethod
    def median(cls, runs: list[Landing]) -> Landing:
        return cls(*(statistics.median(column) for column in zip(*runs, strict=True)))


def small_epochs(broker: Broker, work: Path, epochs: int, rounds: int) -> None:
    print(f"## {epochs} epochs of 1,000 records (median of {rounds} rounds; the first twenty left out)\n")
    print("| job | median epoch ms | of rivermouth | CPU ms an epoch | start to first commit s |")
    print("|---|---|---|---|---|")
    rows = {}
    for name in ("rivermouth", "plain PySpark"):
        medians, cpus, firsts = [], [], []
        for number in range(rounds):
            table = work / f"small-{name.replace(' ', '-')}-{number}"
            arguments = ("events", str(table), "1", "1000", str(epochs))
            done = measure(JOBS[name], broker.bootstrap_servers, *arguments)
            commits = done.said[0]["commits"]
            medians.append(statistics.median(_durations(done.said[0])[20:]))
            cpus.append(done.cpu_between(commits[20], commits[-1]) / (len(commits) - 21))
            firsts.append(commits[0] - done.launched)
        rows[name] = [statistics.median(values) for values in (medians, cpus, firsts)]
    base = rows["rivermouth"][0]
    for name, (median, cpu, first) in rows.items():
        print(f"| {name} | {median * 1000:.0f} | {median / base:.2f} | {cpu * 1000:.0f} | {first:.1f} |")
    print()


def _durations(said: dict[str, Any]) -> list[float]:
    """How long each epoch took, planning included."""
    if "durations" in said:
        return list(said["durations"])
    return [later - earlier for earlier, later in pairwise(said["commits"])]
