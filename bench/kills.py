"""From kill -9 to caught up: the command as a process, and the table's log as the clock."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bench import pipelines
from bench.events import DDL
from bench.measure import ROOT
from bench.tables import ensure_whole
from rivermouth.delta.log import parse_commit
from tests.services.kafka import Broker

EPOCHS = 20  # about, in which a topic is drained: a kill costs the work of one
PATIENCE = 300.0


class Start(NamedTuple):
    """How long a start took: until Spark was up, from there to the claim, from there to the head."""

    spark: float
    claim: float
    drain: float

    @property
    def whole(self) -> float:
        return sum(self)


class Round(NamedTuple):
    """One undisturbed run, and one that was killed and started again."""

    undisturbed: Start
    rest: float  # of the undisturbed run, from the records that the other one had at its kill
    after_kill: Start
    waiting: int  # records that the table had not at the kill


class Log:
    """The claims and epochs in a table's log, each with the time of its file, read on at every look."""

    def __init__(self, table: Path) -> None:
        self.table = table
        self.claims: list[float] = []
        self.epochs: list[tuple[float, int]] = []  # and the records in the table after it
        self._version = -1

    def look(self) -> int:
        """Read on; the number of records in the table."""
        while (file := self.table / "_delta_log" / f"{self._version + 1:020d}.json").exists():
            note = parse_commit(self._version, file.read_bytes()).note
            moment = file.stat().st_mtime
            if note.get("kind") == "claim":
                self.claims.append(moment)
            elif note.get("kind") == "epoch":
                self.epochs.append((moment, self.records + note["counts"]["read"]))
            self._version += 1
        return self.records

    @property
    def records(self) -> int:
        return self.epochs[-1][1] if self.epochs else 0

    def since(self, records: int) -> float:
        """Seconds from the epoch that brought the table to so many records until the last one."""
        return self.epochs[-1][0] - next(moment for moment, there in self.epochs if there >= records)


class Process:
    """One `rivermouth run`."""

    def __init__(self, file: Path, said: Path) -> None:
        self.said = said
        # The JVM of a killed process leaves its folder behind.
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(file.parent)}
        self.launched = time.time()
        with said.open("wb") as out, said.with_suffix(".err").open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "bench.jobs.told_run", str(file)],
                cwd=ROOT,
                env=environment,
                stdout=out,
                stderr=err,
            )

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for something observed while it runs."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise SystemExit(f"waited in vain for {what}; it said: {self._errors()}")
            time.sleep(0.005)

    def times(self, log: Log, begin: float) -> Start:
        """What its way to the head was made of, from a moment on."""
        spark = json.loads(self.said.read_text().splitlines()[0])["spark"]
        return Start(spark - begin, log.claims[-1] - spark, log.epochs[-1][0] - log.claims[-1])

    def kill(self) -> float:
        """kill -9; the moment of it."""
        moment = time.time()
        self.process.kill()
        self.process.wait()
        return moment

    def stop(self) -> None:
        self.process.terminate()
        if self.process.wait(PATIENCE):
            raise SystemExit(f"it did not stop in peace; it said: {self._errors()}")

    def _errors(self) -> str:
        return self.said.with_suffix(".err").read_text(errors="replace")[-2000:]


def measure(broker: Broker, topic: str, count: int, folder: Path) -> Round:
    """Drain a topic into a table undisturbed, and into another with a kill when about half of it is in."""
    folder.mkdir()
    calm = _config(broker, topic, count, folder / "calm")
    process, log = Process(calm, folder / "calm.out"), Log(folder / "calm")
    process.until(lambda: log.look() >= count, "all records")
    undisturbed = process.times(log, process.launched)
    process.stop()
    ensure_whole(log.table, count)

    killed = _config(broker, topic, count, folder / "killed")
    process, broken = Process(killed, folder / "killed.out"), Log(folder / "killed")
    half = count // 2 - count // EPOCHS // 2  # the first epoch may be a smaller one
    process.until(lambda: broken.look() >= half, "half of the records")
    there = set(broken.table.glob("*.parquet"))
    process.until(lambda: set(broken.table.glob("*.parquet")) != there, "the files of the next epoch")
    moment = process.kill()
    records = broken.look()
    process = Process(killed, folder / "again.out")
    process.until(lambda: broken.look() >= count, "all records after a kill")
    after_kill = process.times(broken, moment)
    process.stop()
    ensure_whole(broken.table, count)
    return Round(undisturbed, log.since(records), after_kill, count - records)


def _config(broker: Broker, topic: str, count: int, table: Path) -> Path:
    source = {"bootstrap_servers": broker.bootstrap_servers, "topics": [topic]}
    most = count // EPOCHS
    sink = {"table_uri": str(table), "schema": DDL, "batch_size": min(most, 10_000), "max_batch_size": most}
    sink["flush_interval"] = "200ms"
    return pipelines.write(table.with_suffix(".yaml"), "kafka", source, sink)


def report(rounds: list[Round], count: int) -> None:
    """Print the medians of several rounds."""
    waiting = statistics.median(each.waiting for each in rounds)
    print(f"### From kill to caught up, {waiting:,.0f} records waiting\n")
    times = "one round" if len(rounds) == 1 else f"median of {len(rounds)} rounds"
    print(f"A topic of {count:,} records, epochs of {count // EPOCHS:,}; {times}, seconds.\n")
    print("| | until Spark is up | until the claim | draining | caught up |")
    print("|---|---|---|---|---|")
    after = _median([each.after_kill for each in rounds])
    whole = _median([each.undisturbed for each in rounds])
    rest = statistics.median(each.rest for each in rounds)
    caught_up = statistics.median(each.after_kill.whole for each in rounds)
    print(f"| from the kill, {waiting:,.0f} waiting | {_cells(after)} | {caught_up:.1f} |")
    print(f"| the same records without a kill | | | {rest:.1f} | {rest:.1f} |")
    total = statistics.median(each.undisturbed.whole for each in rounds)
    print(f"| a first start, {count:,} waiting | {_cells(whole)} | {total:.1f} |")
    print()
    lost = statistics.median(each.after_kill.whole - each.rest for each in rounds)
    share = statistics.median((each.after_kill.whole - each.rest) / each.undisturbed.whole for each in rounds)
    print(f"A kill costs {lost:.1f} s, {share:.0%} of a whole undisturbed run.\n")


def _median(starts: list[Start]) -> Start:
    return Start(*(statistics.median(column) for column in zip(*starts, strict=True)))


def _cells(start: Start) -> str:
    return " | ".join(f"{seconds:.1f}" for seconds in start)
