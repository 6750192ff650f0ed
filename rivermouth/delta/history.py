"""What a table's log tells of the rows that a range of a source has become."""

from __future__ import annotations

import json
from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa

from rivermouth.delta.progress import AppIds
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

    def __str__(self) -> str:
        far = "" if self.complete else ", as far back as the log reaches"
        if not self.epochs:
            return f"the log knows of no epoch that landed records of this range{far}"
        return (
            f"{plural(self.epochs, 'epoch')} landed records of this range{far}, {whole(self.rows)} rows; of "
            f"these, {whole(self.still_there)} are in files that are still as written, and would be doubled; "
            f"{whole(self.rows - self.still_there)} were in files that were rewritten or removed since"
        )


def overlap(table: Table, parts: list[AppIds], start: Offsets, end: Offsets) -> Overlap:
    """Find the epochs of a sink (and of the parts of it that land the same records) that touch a range."""
    there = _files(table)
    wanted = {str(p): (start[p], end[p]) for p in end}
    begun: set[str] = set()
    epochs = rows = kept = 0
    for made in table.log.backwards():
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
    return Overlap(epochs, rows, kept, begun == set(wanted))


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
