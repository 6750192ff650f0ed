"""A sink that owns its table: it claims, plans, runs epochs and commits them, in order.

Nothing of its progress is kept anywhere but in the table's log.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from typing import Any

from rivermouth import faults, formats
from rivermouth.config.model import SinkConfig
from rivermouth.delta import dead_letters, progress
from rivermouth.delta.commit import Change, Landed
from rivermouth.delta.files import FileSpec
from rivermouth.delta.progress import AppIds, Progress
from rivermouth.delta.storage import parse_uri
from rivermouth.delta.table import TableSpec, open_table
from rivermouth.errors import DeltaCommitFailed
from rivermouth.observe.events import (
    CommitFailed,
    DeadLettersFinished,
    EpochCommitted,
    RecordsLost,
    SinkRewound,
    SinkStarted,
)
from rivermouth.observe.observer import Observer
from rivermouth.pipeline import batches, decide, plan
from rivermouth.pipeline.decide import Loss
from rivermouth.pipeline.epoch import execute
from rivermouth.pipeline.outputs import Outputs
from rivermouth.pipeline.ownership import Identity, Ownership
from rivermouth.pipeline.rewind import is_replaced, rewind
from rivermouth.pipeline.task import Result, Task
from rivermouth.records import Bounds, Offsets, Partition, number_for
from rivermouth.sources.base import Source


class Sink:
    """One sink, from its claim on."""

    def __init__(
        self,
        identity: Identity,
        config: SinkConfig,
        source: Source,
        observer: Observer,
        sleep: Callable[[float], object] = time.sleep,
        part: str = "",
    ) -> None:
        """`sleep` waits between two attempts to commit; one that ends early makes a stop quick.

        `part` gives the sink progress of its own, beside that of the sink itself: for a replay.
        """
        self.identity = identity
        self.source = source
        self.observer = observer
        self.sleep = sleep
        self.settings = config.config
        self.name = identity.sink
        self.ids = AppIds(identity.pipeline, identity.sink, part)
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
        if self.settings.on_bad_record == "dead_letter":
            # Now, not when the first bad record comes: a table that does not fit should be told at the start.
            dead_letters.opened(self.dead_letter_uri)
        self.outputs = Outputs(
            self.settings, self.ids, self.format.schema, self.table_uri, self.dead_letter_uri
        )
        retries = self.settings.max_commit_retries
        self.hold = Ownership(identity, self.table, self.ids, observer, _fingerprint(config), retries, sleep)
        self.position: Offsets = {}
        self.largest: int | None = None  # bytes of the largest record this owner has read

    @property
    def generation(self) -> int:
        return self.hold.generation

    @property
    def progress(self) -> Progress:
        return self.hold.progress

    def take_over(
        self,
        kind: str,
        txns: Callable[[Progress], Mapping[str, int]],
        finish: Callable[[Progress], None] | None = None,
        **note: Any,
    ) -> None:
        """Become the owner with these txns besides the generation; for what an operator asks for.

        `finish` does what the last owner owes, which is otherwise its dead letters.
        """

        def decided(seen: Progress) -> dict[str, int]:
            (finish or self.finish_dead_letters)(seen)
            taken = {self.ids.generation: seen.generation + 1, self.ids.rejects_landed: seen.rejects}
            return {**taken, self.ids.table: number_for(self.table.id), **txns(seen)}

        self.hold.claim(decided, kind=kind, **note)

    def claim(self, last_owned: int = 0) -> None:
        """Become the owner: finish what the last one left, take the next generation, pin the offsets."""
        begin: Offsets = {}

        def take_over(seen: Progress) -> dict[str, int]:
            nonlocal begin
            self.finish_dead_letters(seen)
            base = self._base(seen)
            begin = self.source.resolve(base.offsets)
            txns = progress.claim(seen, base, self.ids, begin, self.source.identities())
            forgotten = {p: 0 for p in seen.offsets if p not in base.offsets and p not in begin}
            txns.update(progress.place(seen, self.ids, forgotten, {}))
            return {**txns, self.ids.table: number_for(self.table.id)}

        self.hold.claim(take_over, last_owned=last_owned)
        self.position = {p: self.progress.offsets[p] for p in begin}
        self.position.update(self._missing(begin))
        self.observer.emit(SinkStarted(self.name, self.generation, self.progress.epoch, len(self.position)))

    def finish_dead_letters(self, seen: Progress) -> None:
        """Commit the dead letters that the last owner owes, if it owes any."""
        recovered = dead_letters.finish(
            self.table, self.dead_letter_uri, self.ids, seen, self.identity.instance
        )
        if recovered:
            self.observer.emit(DeadLettersFinished(self.name, seen.rejects, recovered))

    def _base(self, seen: Progress) -> Progress:
        """Where to start from: what the log says, or what it said of the version that was restored."""
        restored, replaced = self.hold.restored(seen), is_replaced(self.table, seen)
        if not decide.after_restore(restored, replaced, self.settings.on_restore):
            return seen
        base = rewind(self.table, self.ids, seen, self.dead_letter_uri)
        moved = sum(offset - base.offsets.get(p, 0) for p, offset in seen.offsets.items())
        self.observer.emit(SinkRewound(self.name, moved))
        return base

    def _missing(self, begin: Offsets) -> Offsets:
        """What the table knows of topics that should be there and are not, and has not told yet."""
        there = {partition.topic for partition in begin}
        return {
            partition: offset
            for partition, offset in self.progress.offsets.items()
            if partition.topic not in there
            and self.source.expects(partition.topic)
            and self.progress.topics.get(partition.topic) != 0
        }

    def look(self) -> Offsets:
        """The heads of the source now; what is new is taken up, and what is lost is dealt with."""
        bounds = self.source.bounds(self.position)
        self._take_up({p: bound.earliest for p, bound in bounds.items() if p not in self.position})
        lost = decide.losses(self.progress, self.position, bounds, self.source.identities())
        if lost:
            if self.settings.on_data_loss == "fail":
                decide.refuse(lost)
            self._skip(lost, bounds)
        return plan.ends(self.position, bounds)

    def _take_up(self, found: Offsets) -> None:
        """Take up partitions that appeared while the sink runs, so that a restart knows where they began."""
        if not found:
            return
        new = {p: self.progress.offsets.get(p, offset) for p, offset in found.items()}
        txns = progress.pin(self.progress, self.ids, new, self.source.identities())
        txns[self.ids.generation] = self.generation
        self.hold.commit(Change(txns, self.hold.note("pin")))
        self.hold.know()
        self.position.update(new)

    def _skip(self, lost: list[Loss], bounds: Mapping[Partition, Bounds]) -> None:
        """Go on behind a loss: one commit moves the offsets and lists the gap rows that tell of it."""
        epoch = self.progress.epoch + 1
        moved, topics = decide.behind(lost, self.progress, self.source.identities())
        files = self.outputs.write_gaps(epoch, lost)
        note = self.hold.note(
            "gap",
            epoch=epoch,
            offsets={str(loss.partition): [loss.first, loss.resume] for loss in lost},
            lost=[str(loss) for loss in lost],
            **self._owed(files),
        )
        txns = progress.skip(self.progress, self.ids, self.generation, moved, topics)
        landed = self._commit(Change(txns, note))
        self.hold.know()
        self.position = {p: moved.get(p, offset) for p, offset in self.position.items() if p in bounds}
        self._land_dead_letters(epoch, files)
        for loss in lost:
            self.observer.emit(RecordsLost(self.name, epoch, landed.version, loss.count or 0, str(loss)))

    def run_epoch(self, end: Offsets) -> None:
        """Land the records from the present position to `end`: one Spark job, one commit."""
        began = time.perf_counter()
        epoch, start = self.progress.epoch + 1, {p: self.position[p] for p in end}
        batches.apply(self.source.spark, self.largest)
        result = execute(
            self.source,
            start,
            end,
            self.task(epoch),
            fail_on_bad_record=self.settings.on_bad_record == "fail",
        )
        faults.reach(faults.Point.AFTER_JOB)
        decide.ensure_topics(self.progress, self.source.identities(now=True))
        wrote = time.perf_counter()
        self.largest = max(self.largest or 0, result.largest)
        landed = self._commit(self._change(epoch, start, end, result))
        committed = time.perf_counter()
        try:
            self.hold.know()
            self.position.update(end)
            self._land_dead_letters(epoch, result.dead_letters)
            if not self.ids.part:
                self.source.committed(self.position)
        finally:  # whatever comes after the commit, the epoch is in
            self._tell(epoch, result, landed, began, wrote, committed)

    def _change(self, epoch: int, start: Offsets, end: Offsets, result: Result) -> Change:
        return Change(
            progress.advance(
                self.progress, self.ids, self.generation, end, rejects=bool(result.dead_letters)
            ),
            self.hold.note(
                "epoch",
                epoch=epoch,
                offsets={str(p): [start[p], end[p]] for p in end},
                counts={
                    "read": result.read,
                    "written": result.written,
                    "rejected": result.rejected,
                    "filtered": 0,
                },
                **self._owed(result.dead_letters),
            ),
            result.events,
            overwrite=self.overwrite and bool(result.events),
        )

    def _commit(self, change: Change) -> Landed:
        try:
            return self.hold.commit(change)
        except DeltaCommitFailed as error:
            self.observer.emit(CommitFailed(self.name, error.code))
            raise

    def _owed(self, files: list[FileSpec]) -> dict[str, Any]:
        """What a commit says of the dead letters that come after it."""
        return {"dead_letter_uri": self.dead_letter_uri, "rejects": dead_letters.to_note(files)}

    def _land_dead_letters(self, epoch: int, files: list[FileSpec]) -> None:
        if files:
            faults.reach(faults.Point.BEFORE_DEAD_LETTERS)
            instance = self.identity.instance
            dead_letters.land(self.table, self.dead_letter_uri, self.ids, epoch, files, instance, self.sleep)
            faults.reach(faults.Point.AFTER_DEAD_LETTERS)

    def task(self, epoch: int) -> Task:
        """The work of an epoch, as it travels to the workers."""
        return self.outputs.task(epoch, self.table.delta.metadata().configuration)

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


def _fingerprint(config: SinkConfig) -> str:
    """A short hash that tells whether two commits were made with the same config."""
    return hashlib.sha256(config.model_dump_json().encode()).hexdigest()[:16]
