"""Who owns a sink's progress in a table: taken by a claim, held through commits, lost to the next claim."""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rivermouth import faults
from rivermouth.delta import progress
from rivermouth.delta.commit import Change, Landed, commit
from rivermouth.delta.log import Commit
from rivermouth.delta.progress import AppIds, Progress
from rivermouth.delta.table import Table
from rivermouth.errors import DeltaCommitFailed, Fenced, RivermouthError, TableRestored
from rivermouth.observe.events import CommitRetried, LogCheckpointFailed
from rivermouth.observe.observer import Observer
from rivermouth.pipeline.rewind import undealt_restore

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


@dataclass
class Ownership:
    """One instance's hold on the progress of a sink, or of a part of it."""

    identity: Identity
    table: Table
    ids: AppIds
    observer: Observer
    fingerprint: str = ""
    retries: int = 3
    sleep: Callable[[float], object] = time.sleep
    generation: int = 0  # ours, from the claim on; the log's may be another's
    version: int = -1  # of our latest commit
    progress: Progress = field(default_factory=Progress)

    def claim(
        self,
        decide: Callable[[Progress], dict[str, int]],
        *,
        last_owned: int = 0,
        kind: str = "claim",
        **note: Any,
    ) -> None:
        """Become the owner: `decide` turns what the log says into the txns to take over with.

        An instance that starts again after an error gives the generation it had: if the sink has been claimed
        by another one since, that one keeps it.
        """
        for _ in range(_CLAIM_ATTEMPTS):
            seen = progress.parse(self.table.txns, self.ids)
            if last_owned and self.owner() != self.identity.instance:
                progress.ensure_owner(seen, last_owned, self.identity.sink, self.owner)
            txns = decide(seen)
            self.generation = seen.generation + 1
            faults.reach(faults.Point.BEFORE_CLAIM)
            try:
                self._commit(
                    Change(txns, self.note(kind, **note), mine_alone=False), self._unchanged_since(seen)
                )
                break
            except _Overtaken:  # an epoch of the last owner, or another claim: think again
                continue
        else:
            raise DeltaCommitFailed(
                f"sink {self.identity.sink!r} could not be claimed: its progress kept changing"
            )
        faults.reach(faults.Point.AFTER_CLAIM)
        self.know()

    def commit(self, change: Change) -> Landed:
        """Commit as the owner, or raise because another has become it or the table was restored."""
        before = self.table.version
        landed = self._commit(change, self._still_mine)
        if self.table.checkpoint_due(before):
            self._checkpoint()
        return landed

    def know(self) -> None:
        """Take the progress from the log as it is now, and stop if the sink is no longer ours."""
        self.progress = progress.parse(self.table.txns, self.ids)
        self._still_mine()

    def restored(self, seen: Progress) -> int | None:
        """The version of the newest RESTORE since an owner's last commit: one that was not dealt with."""
        return undealt_restore(self.table.log, self.ids, seen)

    def owner(self) -> str | None:
        """The instance that holds the sink now, as its latest commit names it."""
        made = self.last_commit()
        return made.note.get("instance") if made else None

    def last_commit(self) -> Commit | None:
        """The latest commit of an owner, if the log still has it."""
        return next((c for c in self.table.log.backwards() if self.ids.generation in c.txns), None)

    def note(self, kind: str, **more: Any) -> dict[str, Any]:
        """What a commit says of itself, for people and for repair."""
        return {
            "kind": kind,
            "pipeline": self.identity.pipeline,
            "sink": self.identity.sink,
            "generation": self.generation,
            "instance": self.identity.instance,
            "config": self.fingerprint,
            **more,
        }

    def _commit(self, change: Change, guard: Callable[[], None]) -> Landed:
        def on_retry(attempt: int, reason: str) -> None:
            self.observer.emit(CommitRetried(self.identity.sink, attempt, reason))

        landed = commit(
            self.table, change, retries=self.retries, guard=guard, on_retry=on_retry, sleep=self.sleep
        )
        self.version = landed.version
        return landed

    def _still_mine(self) -> None:
        seen = progress.parse(self.table.txns, self.ids)
        if seen.generation != self.generation:
            last = self.last_commit()
            if last is not None and last.note.get("kind") == "reset":
                raise Fenced(
                    f"offsets of sink {self.identity.sink!r} were set by hand, by {last.note['instance']}",
                    hint="start it again: it goes on from there",
                )
        progress.ensure_owner(seen, self.generation, self.identity.sink, self.owner)
        restored = self.table.log.restored
        if restored is not None and restored.version > self.version:
            # What is right now is decided at the next claim; this epoch, at any rate, is not committed.
            raise TableRestored(
                f"version {restored.version} set the table back with RESTORE while the sink ran",
                hint="the sink starts again, as on_restore says",
                retryable=True,
            )

    def _unchanged_since(self, seen: Progress) -> Callable[[], None]:
        restored = self.table.log.restored

        def guard() -> None:
            now = progress.parse(self.table.txns, self.ids)
            if now != seen or self.table.log.restored is not restored:
                raise _Overtaken("the sink's progress changed while it was being claimed")

        return guard

    def _checkpoint(self) -> None:
        try:
            self.table.checkpoint()
        except Exception as error:  # noqa: BLE001 - the epoch is in; no checkpoint only costs time
            self.observer.emit(LogCheckpointFailed(self.identity.sink, str(error)))


class _Overtaken(RivermouthError):
    """What a claim was based on is no longer so."""
