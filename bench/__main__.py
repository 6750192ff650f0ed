"""`make bench`: rivermouth, plain PySpark and a plain script, one after the other, on one topic."""

from __future__ import annotations

import argparse
import platform
import shutil
import statistics
import tempfile
from itertools import pairwise
from pathlib import Path

import duckdb
import psutil
from duckdb_extensions import import_extension

from bench.events import events
from bench.measure import Measured, measure
from rivermouth.spark import java
from tests.services.kafka import Broker

JOBS = {
    "rivermouth": "bench.jobs.rivermouth",
    "plain PySpark": "bench.jobs.plain_spark",
    "plain script": "bench.jobs.plain_script",
}
SCRIPT_BATCH = 100_000


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench BENCH_ARGS=...")
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument(
        "--rounds", type=int, default=3, help="how often each job is measured; the median counts"
    )
    parser.add_argument("--epochs", type=int, default=60, help="how many epochs of 1,000 records")
    options = parser.parse_args()
    import_extension("delta")
    with tempfile.TemporaryDirectory(prefix="rivermouth-bench-") as folder:
        work = Path(folder)
        (work / "kafka").mkdir()
        with Broker(work / "kafka", benchmark=True) as broker:
            fill(broker, options.events)
            print(f"machine: {machine()}\n")
            throughput(broker, work, options.events, options.rounds)
            small_epochs(broker, work, options.epochs, options.rounds)


def fill(broker: Broker, count: int) -> None:
    broker.create_named_topic("events", 4)
    broker.produce("events", events(count), config={"compression.type": "lz4", "linger.ms": 50})


def throughput(broker: Broker, work: Path, count: int, rounds: int) -> None:
    print(f"## {count:,} events from four partitions (median of {rounds} rounds)\n")
    print("| job | rows/s | against plain PySpark | CPU s | peak MB | files | commits |")
    print("|---|---|---|---|---|---|---|")
    runs: dict[str, list[tuple[float, float, float, int, int]]] = {name: [] for name in JOBS}
    for number in range(rounds):
        for name, module in JOBS.items():
            table = work / f"{name.replace(' ', '-')}-{number}"
            size = SCRIPT_BATCH if name == "plain script" else 1_000_000
            seen = measure(module, broker.bootstrap_servers, "events", str(table), str(size), "0")
            ensure_whole(table, count)
            start, end = seen.said["ready"], seen.said["commits"][-1]
            files = len(list(table.rglob("*.parquet")))
            runs[name].append(
                (
                    count / (end - start),
                    seen.cpu_between(start, end),
                    seen.peak_bytes / 1e6,
                    files,
                    len(seen.said["commits"]),
                )
            )
            shutil.rmtree(table)
    base = statistics.median(run[0] for run in runs["plain PySpark"])
    for name, measured in runs.items():
        rate, cpu, peak, files, commits = (
            statistics.median(column) for column in zip(*measured, strict=True)
        )
        cells = [f"{rate:,.0f}", f"{rate / base:.2f}", f"{cpu:.1f}", f"{peak:,.0f}", f"{files:.0f}"]
        print(f"| {name} | {' | '.join(cells)} | {commits:.0f} |")
    print()


def small_epochs(broker: Broker, work: Path, epochs: int, rounds: int) -> None:
    print(f"## {epochs} epochs of 1,000 records (median of {rounds} rounds; the first ten epochs left out)\n")
    print("| job | median epoch ms | against rivermouth | CPU ms an epoch | start to first commit s |")
    print("|---|---|---|---|---|")
    rows = {}
    for name in ("rivermouth", "plain PySpark"):
        medians, cpus, firsts = [], [], []
        for number in range(rounds):
            table = work / f"small-{name.replace(' ', '-')}-{number}"
            seen = measure(JOBS[name], broker.bootstrap_servers, "events", str(table), "1000", str(epochs))
            medians.append(statistics.median(_durations(seen)[10:]))
            commits = seen.said["commits"]
            cpus.append(seen.cpu_between(commits[10], commits[-1]) / (len(commits) - 11))
            firsts.append(commits[0] - seen.launched)
        rows[name] = [statistics.median(values) for values in (medians, cpus, firsts)]
    base = rows["rivermouth"][0]
    for name, (median, cpu, first) in rows.items():
        print(f"| {name} | {median * 1000:.0f} | {median / base:.2f} | {cpu * 1000:.0f} | {first:.1f} |")
    print()


def _durations(seen: Measured) -> list[float]:
    """How long each epoch took, planning included."""
    if "durations" in seen.said:
        return list(seen.said["durations"])
    commits = seen.said["commits"]
    return [later - earlier for earlier, later in pairwise(commits)]


def ensure_whole(table: Path, count: int) -> None:
    """A fast job that loses rows is not fast."""
    with duckdb.connect() as reader:
        reader.execute("LOAD delta")
        rows, distinct = reader.execute(
            f"SELECT count(id), count(DISTINCT id) FROM delta_scan('{table}')"
        ).fetchall()[0]
    if not rows == distinct == count:
        raise SystemExit(f"{table.name}: {rows} rows, {distinct} of them distinct, of {count} events")


def machine() -> str:
    memory = psutil.virtual_memory().total / 2**30
    versions = f"Python {platform.python_version()}, Java {java.find().version}"
    return f"{psutil.cpu_count()} cores, {memory:.0f} GiB, {versions}"


if __name__ == "__main__":
    main()
