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
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rivermouth import faults, formats
from rivermouth.config.model import SinkConfig
from rivermouth.delta import dead_letters, progress
from rivermouth.delta.commit import Change, Landed, commit
from rivermouth.delta.progress import AppIds, Progress
from rivermouth.delta.statistics import indexed_columns
from rivermouth.delta.storage import parse_uri
from rivermouth.delta.table import TableSpec, open_table
from rivermouth.errors import DeltaCommitFailed, RivermouthError
from rivermouth.observe.events import (
    CommitFailed,
    CommitRetried,
    DeadLettersFinished,
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

_CLAIM_ATTEMPTS = 20


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

    def __init__(
        self,
        identity: Identity,
        config: SinkConfig,
        source: Source,
        observer: Observer,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        """`sleep` waits between two attempts to commit; one that ends early makes a stop quick."""
        self.identity = identity
        self.source = source
        self.observer = observer
        self.sleep = sleep
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
        if self.settings.on_bad_record == "dead_letter":
            # Now, not when the first bad record comes: a table that does not fit should be told at the start.
            open_table(dead_letters.spec(self.dead_letter_uri), create=True)
        self.generation = 0  # ours, from the claim on; the log's may be another's
        self.progress = Progress()
        self.position: Offsets = {}
        self.largest: int | None = None  # bytes of the largest record this owner has read

    def claim(self, last_owned: int = 0) -> None:
        """Become the owner: finish what the last one left, take the next generation, pin the offsets.

        An instance that starts again after an error gives the generation it had: if the sink has been claimed
        by another one since, that one keeps it.
        """
        for _ in range(_CLAIM_ATTEMPTS):
            seen = progress.parse(self.table.txns, self.ids)
            if last_owned and self._owner() != self.identity.instance:
                progress.ensure_owner(seen, last_owned, self.name, self._owner)
            self._finish_dead_letters(seen)
            begin = self.source.resolve(seen.offsets)
            txns = progress.claim(seen, self.ids, begin, self.source.identities())
            self.generation = seen.generation + 1
            faults.reach(faults.Point.BEFORE_CLAIM)
            try:
                self._commit(Change(txns, self._note("claim"), mine_alone=False), self._unchanged_since(seen))
                break
            except _Overtaken:  # an epoch of the last owner, or another claim: think again
                continue
        else:
            raise DeltaCommitFailed(f"sink {self.name!r} could not be claimed: others keep claiming it")
        faults.reach(faults.Point.AFTER_CLAIM)
        self._know()
        self.position = {p: self.progress.offsets[p] for p in begin}
        self.observer.emit(SinkStarted(self.name, self.generation, self.progress.epoch, len(self.position)))

    def _finish_dead_letters(self, seen: Progress) -> None:
        recovered = dead_letters.finish(
            self.table, self.dead_letter_uri, self.ids, seen, self.identity.instance
        )
        if recovered:
            self.observer.emit(DeadLettersFinished(self.name, seen.rejects, recovered))

    def take_up(self, found: Offsets) -> None:
        """Take up partitions that appeared while the sink runs, so that a restart knows where they began."""
        progress.ensure_topics(self.progress, self.source.identities())
        if not found:
            return
        new = {p: self.progress.offsets.get(p, offset) for p, offset in found.items()}
        txns = progress.pin(self.progress, self.ids, new, self.source.identities())
        txns[self.ids.generation] = self.generation
        self._commit(Change(txns, self._note("pin")), self._still_mine)
        self._know()
        self.position.update(new)

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
        faults.reach(faults.Point.AFTER_JOB)
        wrote = time.perf_counter()
        self.largest = max(self.largest or 0, result.largest)
        landed = self._land(epoch, start, end, result)
        committed = time.perf_counter()
        try:
            self._know()
            if result.dead_letters:
                faults.reach(faults.Point.BEFORE_DEAD_LETTERS)
                files, instance = result.dead_letters, self.identity.instance
                dead_letters.land(self.dead_letter_uri, self.ids, epoch, files, instance, self.sleep)
                faults.reach(faults.Point.AFTER_DEAD_LETTERS)
        finally:  # whatever comes after the commit, the epoch is in
            self._tell(epoch, result, landed, began, wrote, committed)

    def _tell(
        self, epoch: int, result: Result, landed: Landed, began: float, wrote: float, committed: float
    ) -> None:
        kept = self.settings.on_bad_record == "dead_letter"
        self.observer.emit(
            EpochCommitted(
                self.name,
                epoch=epoch,
                generation=self.generation,
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
        rejects = bool(result.dead_letters)
        change = Change(
            progress.advance(self.progress, self.ids, self.generation, end, rejects=rejects),
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
            landed = self._commit(change, self._still_mine)
        except DeltaCommitFailed as error:
            self.observer.emit(CommitFailed(self.name, error.code))
            raise
        self.position.update(end)
        if self.table.checkpoint_due(before):
            self._checkpoint()
        return landed

    def _commit(self, change: Change, guard: Callable[[], None]) -> Landed:
        def on_retry(attempt: int, reason: str) -> None:
            self.observer.emit(CommitRetried(self.name, attempt, reason))

        retries = self.settings.max_commit_retries
        return commit(self.table, change, retries=retries, guard=guard, on_retry=on_retry, sleep=self.sleep)

    def _know(self) -> None:
        """Take the progress from the log as it is now, and stop if the sink is no longer ours."""
        self.progress = progress.parse(self.table.txns, self.ids)
        self._still_mine()

    def _still_mine(self) -> None:
        seen = progress.parse(self.table.txns, self.ids)
        progress.ensure_owner(seen, self.generation, self.name, self._owner)

    def _unchanged_since(self, seen: Progress) -> Callable[[], None]:
        def guard() -> None:
            if progress.parse(self.table.txns, self.ids) != seen:
                raise _Overtaken("the sink's progress changed while it was being claimed")

        return guard

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
            "generation": self.generation,
            "instance": self.identity.instance,
            "config": self.fingerprint,
            **more,
        }


def _fingerprint(config: SinkConfig) -> str:
    """A short hash that tells whether two commits were made with the same config."""
    return hashlib.sha256(config.model_dump_json().encode()).hexdigest()[:16]


class _Overtaken(RivermouthError):
    """What a claim was based on is no longer so."""
