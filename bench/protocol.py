"""What exactly-once costs: in an epoch, at a start, in a commit, after a kill. Prints Markdown."""

from __future__ import annotations

import datetime
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import kills
from bench.jobs.epoch_parts import LEFT_OUT, PARTS, RECORDS
from bench.jobs.long_log import AROUND, MOVED, PAST, SHORT
from bench.measure import ROOT, machine, measure
from bench.topics import PARTITIONS, fill
from tests.services.kafka import Broker

BAD_IN = 100  # one record in so many is bad, where some are


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rounds: int
    epochs: int
    versions: int
    partitions: int
    starts: int
    waiting: int


WHOLE = Sizes(rounds=3, epochs=100, versions=10_000, partitions=1_000, starts=7, waiting=1_000_000)
SMALL = Sizes(rounds=1, epochs=20, versions=1_000, partitions=100, starts=3, waiting=100_000)


def run(broker: Broker, work: Path, sizes: Sizes) -> None:
    """Measure all of it, then print the section."""
    began = time.monotonic()
    tell("epochs of 1,000 records")
    small = epochs(broker, work, sizes)
    tell("kill and start again")
    killed = kill(broker, work, sizes)
    tell(f"a table of {sizes.versions:,} versions")
    (long_log,) = long_table(broker, work, sizes)
    header(time.monotonic() - began)
    report_epochs(small, sizes)
    report_starts(long_log, [*small, long_log], sizes)
    report_commits(long_log, sizes)
    kills.report(killed, 2 * sizes.waiting)


def tell(what: str) -> None:
    print(what, file=sys.stderr)


def epochs(broker: Broker, work: Path, sizes: Sizes) -> list[dict[str, Any]]:
    records = RECORDS * (LEFT_OUT + sizes.epochs)
    fill(broker, "clean", records)
    fill(broker, "spoilt", records, one_bad_in=BAD_IN)
    seen = []
    for number in range(sizes.rounds):
        folder = work / f"epochs-{number}"
        folder.mkdir()
        arguments = (broker.bootstrap_servers, str(folder), str(sizes.epochs), "clean", "spoilt")
        seen += measure("bench.jobs.epoch_parts", *arguments).said
    return seen


def kill(broker: Broker, work: Path, sizes: Sizes) -> list[kills.Round]:
    # Half of them are in the table at the kill, and the other half waits.
    count = 2 * sizes.waiting
    fill(broker, "waiting", count)
    return [kills.measure(broker, "waiting", count, work / f"kill-{n}") for n in range(sizes.rounds)]


def long_table(broker: Broker, work: Path, sizes: Sizes) -> list[dict[str, Any]]:
    broker.create_named_topic("many", sizes.partitions)
    broker.create_named_topic("one", 1)
    folder = work / "long-log"
    folder.mkdir()
    numbers = (str(sizes.versions), str(sizes.partitions), str(sizes.starts))
    arguments = (broker.bootstrap_servers, str(folder), *numbers, "many", "one")
    return measure("bench.jobs.long_log", *arguments).said


def header(seconds: float) -> None:
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    commit = described.stdout.strip() or "unknown"
    today = datetime.datetime.now(datetime.timezone.utc).date()
    print(f"Measured at commit `{commit}`, {today}, {machine()}, in {seconds / 60:.0f} minutes.\n")


def report_epochs(seen: list[dict[str, Any]], sizes: Sizes) -> None:
    print(f"### An epoch of {RECORDS:,} records from {PARTITIONS} partitions\n")
    print(
        f"{sizes.epochs} epochs of each kind by turns, the first {LEFT_OUT} left out, "
        f"median of {plural(sizes.rounds, 'process', 'processes')}.\n"
    )
    print("| part | no bad records: ms | share | 1 % bad: ms | share |")
    print("|---|---|---|---|---|")
    for part in [*PARTS, "the rest", "whole"]:
        cells = []
        for topic in ("clean", "spoilt"):
            told = [each["parts"][topic][part] for each in seen]
            share = statistics.median(each["share"] for each in told)
            spent = statistics.median(each["seconds"] for each in told)
            # What happens once in a hundred epochs has a share, and a median of nothing.
            cells += [f"{spent * 1000:.1f}" if spent else "", f"{share:.1%}" if share else ""]
        print(f"| {part} | {' | '.join(cells)} |")
    print()


def report_starts(told: dict[str, Any], all_told: list[dict[str, Any]], sizes: Sizes) -> None:
    print(f"### A start on {sizes.versions:,} versions and {sizes.partitions:,} partitions\n")
    spark = statistics.median(each["spark"] for each in all_told)
    processes = plural(len(all_told), "process", "processes")
    print(
        f"Spark itself takes {spark:.1f} s (median of {processes}) and is up already. "
        f"Median of {sizes.starts} starts of each kind by turns, milliseconds.\n"
    )
    print("| table | open | claim | first look | together | times |")
    print("|---|---|---|---|---|---|")
    short, long = told["starts"]["short"], told["starts"]["long"]
    base = sum(short.values())
    rows = {
        f"{SHORT} versions, 1 partition": short,
        f"{sizes.versions + PAST:,} versions, {sizes.partitions:,} partitions": long,
    }
    for name, times in rows.items():
        whole = sum(times.values())
        cells = " | ".join(f"{times[part] * 1000:.0f}" for part in ("open", "claim", "look"))
        print(f"| {name} | {cells} | {whole * 1000:.0f} | {whole / base:.1f} |")
    print("\nWhat a start asks of Kafka, with a new client, and a look once it runs:\n")
    print("| topic | where to begin | first bounds | together | times | a later look |")
    print("|---|---|---|---|---|---|")
    base = sum(told["kafka"]["one"][part] for part in ("resolve", "bounds"))
    for name, topic in {"1 partition": "one", f"{sizes.partitions:,} partitions": "many"}.items():
        times = told["kafka"][topic]
        whole = times["resolve"] + times["bounds"]
        cells = f"{times['resolve'] * 1000:.0f} | {times['bounds'] * 1000:.0f} | {whole * 1000:.0f}"
        print(f"| {name} | {cells} | {whole / base:.1f} | {times['again'] * 1000:.0f} |")
    print()


def report_commits(told: dict[str, Any], sizes: Sizes) -> None:
    print("### A commit at a version\n")
    print(
        f"Median of {AROUND} commits around it, each of one file and the offsets of {MOVED} partitions "
        "(or of the only one), milliseconds; a log checkpoint that is due there is not in it.\n"
    )
    print("| partitions of the sink | version | epochs of this owner | commit | times | log checkpoint |")
    print("|---|---|---|---|---|---|")
    base = told["by version"][0]["commit"]
    for partitions, rows in {sizes.partitions: told["by version"], 1: told["by epoch"]}.items():
        for at in rows:
            checkpoint = f"{at['checkpoint'] * 1000:.0f}" if at["checkpoint"] else ""
            cells = f"{at['commit'] * 1000:.1f} | {at['commit'] / base:.1f} | {checkpoint}"
            print(f"| {partitions:,} | {at['version']:,.0f} | {at['epoch']:,.0f} | {cells} |")
    print()


def plural(count: int, one: str, more: str) -> str:
    return f"{count} {one if count == 1 else more}"
