"""What a table's log tells of the rows that a range of a source has become."""

from __future__ import annotations

import json
from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa

from rivermouth.delta.log import Commit
from rivermouth.delta.progress import AppIds, parse, partition_named
from rivermouth.delta.table import Table
from rivermouth.observe.figures import plural, whole
from rivermouth.records import Offsets


@dataclass(frozen=True)
class Overlap:
    """The epochs that have landed records of a range, and what of their rows is still as they wrote it."""

    epochs: int
    rows: int  # what those epochs wrote; epochs that lie in the range only partly are counted whole
    still_there: int  # of these, rows in files that nobody has rewritten or removed since
    complete: bool  # whether the log reaches back to the beginning of the range
    letters: int = 0  # rows that replays of dead letters landed, which may be of this range

    def __str__(self) -> str:
        far = "" if self.complete else ", as far back as the log reaches"
        replayed = (
            f"; replays of dead letters landed {whole(self.letters)} rows more, which may be of this range"
        )
        more = replayed if self.letters else ""
        if not self.epochs:
            return f"the log knows of no epoch that landed records of this range{far}{more}"
        return (
            f"{plural(self.epochs, 'epoch')} landed records of this range{far}, {whole(self.rows)} rows; of "
            f"these, {whole(self.still_there)} are in files that are still as written, and would be doubled; "
            f"{whole(self.rows - self.still_there)} were in files that were rewritten or removed since{more}"
        )


def overlap(table: Table, parts: list[AppIds], start: Offsets, end: Offsets) -> Overlap:
    """Find the epochs of a sink (and of the parts of it that land the same records) that touch a range."""
    there = _files(table)
    wanted = {str(p): (start[p], end[p]) for p in end}
    begun: set[str] = set()
    epochs = rows = kept = letters = 0
    for made in table.log.backwards():
        if made.note.get("kind") == "dead-letter replay" and _is_of(made, parts[0]):
            letters += int(made.note["counts"]["written"])
        if not any(ids.epoch in made.txns for ids in parts):
            continue
        landed = {
            p: span for p, span in made.note.get("offsets", {}).items() if p in wanted and span[1] is not None
        }
        begun |= {p for p, (first, _) in landed.items() if first <= wanted[p][0]}
        if not any(first < wanted[p][1] and last > wanted[p][0] for p, (first, last) in landed.items()):
            continue
        epochs += 1
        for path, count in _added(table, made.version).items():
            rows += count
            kept += count if path in there else 0
    return Overlap(epochs, rows, kept, begun == set(wanted), letters)


def read_again(table: Table, ids: AppIds) -> str:
    """In SQL, the dead letters whose records were read again since: the last time tells what became of them.

    That happens where an operator replays a range or sets offsets back. A letter belongs to an epoch of the
    sink, or, counted downwards, to one of its replays.
    """
    main = AppIds(ids.pipeline, ids.sink)
    epoch = replay = 0  # the last ones so far
    highest: dict[str, int] = {}  # how far each partition was read so far
    conditions = []
    for made in reversed([made for made in table.log.effective() if _is_of(made, ids)]):
        if created := parse(made.txns, main).topics:  # for the first time, or again: those are other records
            highest = {
                name: end for name, end in highest.items() if partition_named(name).topic not in created
            }
        if made.note["kind"] != "epoch":
            continue
        for name, (first, last) in made.note["offsets"].items():
            before = highest.get(name, first)
            if first < before:
                partition = partition_named(name)
                topic = partition.topic.replace("\\", "\\\\").replace("'", "\\'")
                conditions.append(
                    f"(topic = '{topic}' AND partition = {partition.number} "
                    f"AND offset >= {first} AND offset < {min(last, before)} "
                    f"AND ((epoch > 0 AND epoch <= {epoch}) OR (epoch < 0 AND epoch >= -{replay})))"
                )
            highest[name] = max(last, before)
        if main.epoch in made.txns:
            epoch = made.note["epoch"]
        else:
            replay = made.note["epoch"]
    return " OR ".join(conditions) or "false"


def _is_of(made: Commit, ids: AppIds) -> bool:
    return (made.note.get("pipeline"), made.note.get("sink")) == (ids.pipeline, ids.sink)


def _files(table: Table) -> set[str]:
    actions: pa.Table = pa.table(table.delta.get_add_actions(flatten=True))
    return {unquote(path) for path in actions.column("path").to_pylist()}


def _added(table: Table, version: int) -> dict[str, int]:
    """The files that a commit added, with the number of rows in each."""
    adds = [line for line in table.log.text(version).splitlines() if line.startswith(b'{"add"')]
    found = [json.loads(line)["add"] for line in adds]
    return {
        unquote(add["path"]): int(json.loads(add.get("stats") or "{}").get("numRecords", 0)) for add in found
    }
