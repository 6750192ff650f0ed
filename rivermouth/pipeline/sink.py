"""A sink that owns its table: it claims, plans, runs epochs and commits them, in order.

Nothing of its progress is kept anywhere but in the table's log.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import socket
import time
import uuid
from dataclasses import dataclass
from typing import Any

from rivermouth import formats
from rivermouth.config.model import SinkConfig
from rivermouth.delta import dead_letters, progress
from rivermouth.delta.commit import Change, Landed, commit, delays
from rivermouth.delta.progress import AppIds, Progress
from rivermouth.delta.statistics import indexed_columns
from rivermouth.delta.storage import parse_uri
from rivermouth.delta.table import TableSpec, open_table
from rivermouth.errors import DeltaCommitFailed, Fenced
from rivermouth.observe.events import (
    CommitFailed,
    CommitRetried,
    EpochCommitted,
    LogCheckpointFailed,
    SinkStarted,
)
from rivermouth.observe.observer import Observer
from rivermouth.pipeline import batches
from rivermouth.pipeline.epoch import execute
from rivermouth.pipeline.task import FilePlan, Result, Task
from rivermouth.records import Offsets
from rivermouth.sources.base import Source

_CLAIM_RETRIES = 5


@dataclass(frozen=True)
class Identity:
    """Who this instance of a sink is, for its successors and for people."""

    pipeline: str
    sink: str
    instance: str

    @classmethod
    def new(cls, pipeline: str, sink: str) -> Identity:
        return cls(pipeline, sink, f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}")


class Sink:
    """One sink, from its claim on."""

    def __init__(self, identity: Identity, config: SinkConfig, source: Source, observer: Observer) -> None:
        self.identity = identity
        self.source = source
        self.observer = observer
        self.settings = config.config
        self.name = identity.sink
        self.ids = AppIds(identity.pipeline, identity.sink)
        self.overwrite = self.settings.write_mode == "overwrite"
        self.format = formats.create(self.settings.schema_type, self.settings.event_schema)
        # Made absolute here: a worker, and the next start, may have another working directory.
        self.table_uri = parse_uri(self.settings.table_uri)
        self.dead_letter_uri = parse_uri(self.settings.dead_letter_uri)
        self.table = open_table(
            TableSpec(
                self.table_uri,
                self.format.schema,
                tuple(self.settings.partition_columns),
                self.settings.table_properties,
                self.overwrite,
            ),
            create=self.settings.auto_create_table,
        )
        self.fingerprint = _fingerprint(config)
        self.progress = Progress()
        self.position: Offsets = {}
        self.largest: int | None = None  # bytes of the largest record this owner has read

    def claim(self) -> None:
        """Become the owner: finish what the last one left, take the next generation, pin the offsets."""
        # Not retried as it is: a commit that came between may have been an epoch of the last owner.
        for delay in [0.0, *delays(max(self.settings.max_commit_retries, _CLAIM_RETRIES))]:
            time.sleep(delay)
            seen = progress.parse(self.table.txns, self.ids)
            finished = dead_letters.finish(self.table, self.ids, seen, self.identity.instance)
            begin = self.source.resolve(seen.offsets)
            txns = progress.claim(seen, self.ids, begin, self.source.identities())
            mine = seen.generation + 1
            note = self._note("claim", generation=mine, recovered_dead_letters=finished)
            try:
                self._commit(Change(txns, note), seen.generation, retries=0)
                break
            except (Fenced, DeltaCommitFailed) as error:
                failure = error
        else:
            raise DeltaCommitFailed(
                f"sink {self.name!r} could not be claimed: {failure.message}"
            ) from failure
        self.progress = progress.parse(self.table.txns, self.ids)
        progress.ensure_owner(self.progress, mine, self.name, self._owner)
        self.position = {p: self.progress.offsets[p] for p in begin}
        self.observer.emit(
            SinkStarted(self.name, self.progress.generation, self.progress.epoch, len(self.position))
        )

    def take_up(self, new: Offsets) -> None:
        """Take up partitions that appeared while the sink runs, so that a restart knows where they began."""
        progress.ensure_topics(self.progress, self.source.identities())
        if not new:
            return
        txns = progress.pin(self.progress, self.ids, new, self.source.identities())
        txns[self.ids.generation] = self.progress.generation
        self._commit(
            Change(txns, self._note("pin")), self.progress.generation, self.settings.max_commit_retries
        )
        self.progress = progress.parse(self.table.txns, self.ids)
        self.position.update({p: self.progress.offsets[p] for p in new})

    def run_epoch(self, end: Offsets) -> None:
        """Land the records from the present position to `end`: one Spark job, one commit."""
        began = time.perf_counter()
        epoch, start = self.progress.epoch + 1, {p: self.position[p] for p in end}
        batches.apply(self.source.spark, self.largest)
        result = execute(
            self.source,
            start,
            end,
            self._task(epoch),
            fail_on_bad_record=self.settings.on_bad_record == "fail",
        )
        wrote = time.perf_counter()
        self.largest = max(self.largest or 0, result.largest)
        landed = self._land(epoch, start, end, result)
        committed = time.perf_counter()
        if result.dead_letters:
            files = result.dead_letters
            dead_letters.land(self.dead_letter_uri, self.ids, epoch, files, self.identity.instance)
        kept = self.settings.on_bad_record == "dead_letter"
        self.observer.emit(
            EpochCommitted(
                self.name,
                epoch=epoch,
                generation=self.progress.generation,
                version=landed.version,
                read=result.read,
                written=result.written,
                dead=result.rejected if kept else {},
                dropped={} if kept else result.rejected,
                filtered=0,
                files=len(result.events),
                bytes=sum(file.size for file in result.events),
                write_seconds=wrote - began,
                commit_seconds=committed - wrote,
                epoch_seconds=time.perf_counter() - began,
                retries=landed.retries,
            )
        )

    def _task(self, epoch: int) -> Task:
        s = self.settings
        target = s.target_file_size_mb * 1024 * 1024
        columns = tuple(s.partition_columns)
        indexed = indexed_columns(self.table.delta.metadata().configuration)
        events = FilePlan(self.table_uri, self.format.schema, columns, s.compression, target, indexed)
        rejects = FilePlan(
            self.dead_letter_uri, dead_letters.SCHEMA, dead_letters.PARTITION_COLUMNS, s.compression, target
        )
        day = datetime.datetime.now(datetime.timezone.utc).date()
        keep = rejects if s.on_bad_record == "dead_letter" else None
        names = (self.identity.pipeline, self.name)
        return Task(s.schema_type, s.event_schema, events, keep, *names, epoch, day)

    def _land(self, epoch: int, start: Offsets, end: Offsets, result: Result) -> Landed:
        change = Change(
            progress.advance(self.progress, self.ids, end, rejects=bool(result.dead_letters)),
            self._note(
                "epoch",
                epoch=epoch,
                offsets={str(p): [start[p], end[p]] for p in end},
                counts={
                    "read": result.read,
                    "written": result.written,
                    "rejected": result.rejected,
                    "filtered": 0,
                },
                dead_letter_uri=self.dead_letter_uri,
                rejects=dead_letters.to_note(result.dead_letters),
            ),
            result.events,
            overwrite=self.overwrite and bool(result.events),
        )
        before = self.table.version
        try:
            landed = self._commit(change, self.progress.generation, self.settings.max_commit_retries)
        except DeltaCommitFailed as error:
            self.observer.emit(CommitFailed(self.name, error.code))
            raise
        self.progress = progress.parse(self.table.txns, self.ids)
        self.position.update(end)
        if self.table.checkpoint_due(before):
            self._checkpoint()
        return landed

    def _commit(self, change: Change, generation: int, retries: int) -> Landed:
        """Commit while `generation` is the table's; raises Fenced when it no longer is."""

        def guard() -> None:
            seen = progress.parse(self.table.txns, self.ids)
            progress.ensure_owner(seen, generation, self.name, self._owner)

        def on_retry(attempt: int, reason: str) -> None:
            self.observer.emit(CommitRetried(self.name, attempt, reason))

        return commit(self.table, change, retries=retries, guard=guard, on_retry=on_retry)

    def _owner(self) -> str | None:
        """The instance that holds the sink now, as its latest claim names it."""
        for made in self.table.log.backwards():
            if self.ids.generation in made.txns:
                return made.note.get("instance")
        return None

    def _checkpoint(self) -> None:
        try:
            self.table.checkpoint()
        except Exception as error:  # noqa: BLE001 - the epoch is in; no checkpoint only costs time
            self.observer.emit(LogCheckpointFailed(self.name, str(error)))

    def _note(self, kind: str, **more: Any) -> dict[str, Any]:
        return {
            "kind": kind,
            "pipeline": self.identity.pipeline,
            "sink": self.name,
            "generation": self.progress.generation,
            "instance": self.identity.instance,
            "config": self.fingerprint,
            **more,
        }


def _fingerprint(config: SinkConfig) -> str:
    """A short hash that tells whether two commits were made with the same config."""
    return hashlib.sha256(config.model_dump_json().encode()).hexdigest()[:16]
