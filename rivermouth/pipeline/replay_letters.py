"""Sends dead letters through the pipeline again, and marks those that became events.

Like a replay of a range it has progress of its own in the main table's log. One epoch takes all that match:
its commit holds the events and lists the notes of which letters they were; the marks come after it, and if
the process dies in between, the next replay sets them before it does anything else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from rivermouth import faults
from rivermouth.config.model import DeltaLakeConfig
from rivermouth.delta import dead_letters, marks, progress
from rivermouth.delta.commit import Change
from rivermouth.delta.history import read_again
from rivermouth.delta.log import Commit
from rivermouth.delta.progress import Progress
from rivermouth.errors import ConfigError, ProgressLost
from rivermouth.pipeline.epoch import execute
from rivermouth.pipeline.rewind import ensure_dealt_with, is_replaced
from rivermouth.pipeline.sink import Sink
from rivermouth.pipeline.task import FilePlan, Result
from rivermouth.records import RECORD_SCHEMA, Offsets
from rivermouth.sources.base import RecordsPerOffset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PART = "dead_letters_replay"


@dataclass(frozen=True)
class Letters:
    """The dead letters of one sink that were not replayed yet, as something an epoch can read."""

    spark: SparkSession
    uri: str
    version: int
    condition: str  # Spark SQL
    records_per_offset: RecordsPerOffset = "unknown"

    def read(self, start: Offsets, end: Offsets) -> DataFrame:
        """Each record once, also where it was set aside more than once."""
        found = self.spark.read.format("delta").option("versionAsOf", self.version).load(self.uri)
        chosen = found.where(self.condition).dropDuplicates(marks.SCHEMA.names)
        return chosen.select(*RECORD_SCHEMA.names)


def ensure_possible(settings: DeltaLakeConfig, name: str) -> None:
    """Refuse what cannot be done at all."""
    if settings.write_mode == "overwrite":
        raise ConfigError(
            f"sink {name!r} has write_mode overwrite, where an epoch replaces the table",
            hint="dead letters cannot be replayed into such a table",
        )


def replay(sink: Sink, condition: str = "true") -> Result:
    """Replay the dead letters of a sink that match a condition in Spark SQL."""
    ensure_possible(sink.settings, sink.name)
    ensure_dealt_with(sink.table, sink.ids)
    sink.take_over(PART, lambda seen: {}, finish=lambda seen: finish(sink, seen))
    marks.clear(sink.dead_letter_uri, sink.ids, sink.generation)
    table = dead_letters.opened(sink.dead_letter_uri)
    # Where an offset is not a record's own, nothing can be told by it.
    told = sink.source.records_per_offset != "unknown"
    again = read_again(sink.table, sink.ids) if told else "false"
    whose = f"pipeline = '{sink.ids.pipeline}' AND sink = '{sink.ids.sink}' AND replayed IS NULL"
    records = f"reason <> '{dead_letters.RECORDS_LOST}'"  # a gap row is no record
    letters = Letters(
        sink.source.spark,
        sink.dead_letter_uri,
        table.version,
        f"{whose} AND {records} AND ({condition}) AND NOT ({again})",
    )
    epoch = sink.progress.epoch + 1
    notes = FilePlan(
        marks.folder(sink.dead_letter_uri, sink.ids, sink.generation), marks.SCHEMA, (), "snappy", 1 << 30
    )
    task = replace(sink.task(epoch), dead_letters=None, marks=notes)
    result = execute(letters, {}, {}, task, fail_on_bad_record=False)
    faults.reach(faults.Point.AFTER_JOB)
    if not result.events:
        return result
    now = datetime.now(timezone.utc)
    note = sink.hold.note(
        "dead-letter replay",
        epoch=epoch,
        counts={"read": result.read, "written": result.written, "rejected": result.rejected, "filtered": 0},
        dead_letter_uri=sink.dead_letter_uri,
        marks=dead_letters.to_note(result.marks),
        replayed=now.isoformat(),
    )
    txns = progress.advance(sink.progress, sink.ids, sink.generation, {}, rejects=True)
    sink.hold.commit(Change(txns, note, result.events))
    sink.hold.know()
    faults.reach(faults.Point.BEFORE_DEAD_LETTERS)
    marks.land(sink.dead_letter_uri, sink.ids, sink.generation, result.marks, now, sink.sleep)
    faults.reach(faults.Point.AFTER_DEAD_LETTERS)
    done = {sink.ids.rejects_landed: epoch, sink.ids.generation: sink.generation}
    sink.hold.commit(Change(done, sink.hold.note("dead-letter replay marked")))
    return result


def finish(sink: Sink, seen: Progress) -> None:
    """Set the marks that the last replay owes, if it owes any."""
    if seen.rejects == seen.rejects_landed or is_replaced(sink.table, seen):
        return
    if (made := _owing(sink.table.log.effective(), sink, seen)) is not None:
        files = dead_letters.from_note(made.note["marks"])
        when = datetime.fromisoformat(made.note["replayed"])
        generation = made.note["generation"]
        marks.land(made.note["dead_letter_uri"], sink.ids, generation, files, when, sink.sleep)
        return
    if _owing(sink.table.log.backwards(), sink, seen) is not None:
        return  # a RESTORE took the events away, so the letters are as bad as they were
    if not marks.are_there(sink.dead_letter_uri, sink.ids):  # they are removed when their letters are marked
        return
    raise ProgressLost(
        f"the last replay of dead letters of sink {sink.name!r} may not have marked them, and the commit "
        f"that lists them is gone from the log of {sink.table_uri}",
        hint="compare the table with its dead letters, and set their column `replayed` by hand",
    )


def _owing(commits: Iterator[Commit], sink: Sink, seen: Progress) -> Commit | None:
    """The commit of the last replay, which lists the marks that were to come after it."""
    return next((made for made in commits if made.txns.get(sink.ids.rejects) == seen.rejects), None)
