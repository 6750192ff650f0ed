"""Judges a run: was every produced event stored exactly once, and did the epochs follow each other?

It trusts nothing of ours. Rows are read with DuckDB; the log is read as plain JSON.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb
from duckdb_extensions import import_extension

from tests.chaos.log import Log
from tests.chaos.stream import Stream

import_extension("delta")

_SHOWN = 20


def check(table: Path, *streams: Stream) -> None:
    """Raise unless what these streams produced is in the table, or among its dead letters, once."""
    good = set().union(*(stream.good for stream in streams))
    bad = set().union(*(stream.bad for stream in streams))
    assert good or bad, "nothing was produced, so nothing is proved"
    assert_once("the table", good, events(table))
    assert_once("the dead-letter table", bad, dead_letters(table))
    assert_in_order(Log(table).notes())


def events(table: Path) -> list[int]:
    """The numbers in a table; those below zero are other writers' and none of our business."""
    return [n for (n,) in _query(f"SELECT n FROM delta_scan('{table}') WHERE n >= 0")]


def dead_letters(table: Path) -> list[int]:
    """The numbers among a table's dead letters: every record has its number as its key."""
    return [int(key) for (key,) in _query(f"SELECT key FROM delta_scan('{table}_dead_letters')")]


def assert_once(where: str, produced: Iterable[int], stored: Sequence[int]) -> None:
    """count = distinct = produced; otherwise say which numbers are missing, doubled or not ours."""
    expected, counts = set(produced), Counter(stored)
    wrong = {
        "missing": sorted(expected - counts.keys()),
        "doubled": sorted(number for number, count in counts.items() if count > 1),
        "not of here": sorted(counts.keys() - expected),
    }
    said = [f"{what}: {_shown(numbers)}" for what, numbers in wrong.items() if numbers]
    told = f"{where} has {len(stored)} records, {len(counts)} distinct, {len(expected)} were produced"
    assert not said, "; ".join([told, *said])


def assert_in_order(notes: Sequence[dict[str, Any]]) -> None:
    """Raise unless each sink's epochs follow each other in number and offset, each by the sink's owner."""
    followed: dict[tuple[str, str], _Sequence] = {}
    for note in notes:
        followed.setdefault((note["pipeline"], note["sink"]), _Sequence()).take(note)


class _Sequence:
    """The commits of one sink, as far as they were followed; a cleaned log may begin anywhere."""

    def __init__(self) -> None:
        self.epoch: int | None = None
        self.generation = 0
        self.owner: str | None = None
        self.offsets: dict[str, int] = {}

    def take(self, note: dict[str, Any]) -> None:
        told = {key: note.get(key) for key in ("kind", "epoch", "generation", "instance", "offsets")}
        assert note["generation"] >= self.generation, (
            f"the generation went back from {self.generation}: {told}"
        )
        if note["kind"] == "claim":
            assert note["generation"] > self.generation, f"a claim took no new generation: {told}"
            self.owner = note["instance"]
        elif self.owner is not None:
            assert note["generation"] == self.generation, f"a generation that was never claimed: {told}"
            assert note["instance"] == self.owner, f"committed while {self.owner} was the owner: {told}"
        self.generation = note["generation"]
        if note["kind"] == "epoch":
            assert self.epoch is None or note["epoch"] == self.epoch + 1, f"epoch {self.epoch}, then {told}"
            self.epoch = note["epoch"]
            for partition, (start, end) in note["offsets"].items():
                last = self.offsets.get(partition, start)
                assert start == last, f"{partition} was read up to {last}, then {told}"
                assert end >= start, f"{partition} goes back: {told}"
                self.offsets[partition] = end


def _query(sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.execute("LOAD delta")
        return connection.execute(sql).fetchall()


def _shown(numbers: list[int]) -> str:
    more = f" and {len(numbers) - _SHOWN} more" if len(numbers) > _SHOWN else ""
    return ", ".join(map(str, numbers[:_SHOWN])) + more
