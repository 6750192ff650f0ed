"""Everything that is worth telling, each declared once: its fields, its log line, what it counts."""

# `line` and `apply` are explained once, in `Event`.

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rivermouth.observe.figures import age, duration, plural, reasons, short, size, whole
from rivermouth.observe.state import LastError, Phase, SinkStatus

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Event:
    """Something happened to a sink. A level of NOTSET means no log line."""

    level: ClassVar[int] = logging.NOTSET
    sink: str

    def line(self) -> str:
        """The log line, without time, level and sink."""
        return type(self).__name__

    def apply(self, status: SinkStatus) -> None:
        """Change what is known of the sink; its `now` and `at` are the event's."""


@dataclass(frozen=True)
class SinkStarted(Event):
    """The sink has claimed its table and begins, or begins again after an error."""

    level = logging.INFO
    generation: int
    epoch: int  # the last committed one
    positions: int  # partitions it reads

    def line(self) -> str:
        where = f"goes on after epoch {whole(self.epoch)}" if self.epoch else "starts anew"
        return f"{where}, generation {self.generation}, {plural(self.positions, 'partition')}"

    def apply(self, status: SinkStatus) -> None:
        status.phase = "running"
        status.running_since = status.heard = status.now
        status.generation, status.epoch = self.generation, self.epoch
        status.recent.clear()


@dataclass(frozen=True)
class LagMeasured(Event):
    """The heads of the source were polled. Tell it at every poll: it is also the sign of life."""

    lag: int  # records that wait

    def apply(self, status: SinkStatus) -> None:
        status.lag = self.lag
        status.heard = status.now
        if self.lag <= 0:
            status.waiting_since = None
        elif status.waiting_since is None:
            status.waiting_since = status.now


@dataclass(frozen=True, kw_only=True)
class EpochCommitted(Event):
    """An epoch is in the table. read = written + dead + dropped + filtered."""

    level = logging.DEBUG
    epoch: int
    generation: int
    version: int  # of the table
    read: int
    written: int
    dead: Mapping[str, int]  # by reason
    dropped: Mapping[str, int]  # by reason
    filtered: int
    files: int
    bytes: int
    write_seconds: float  # the Spark job: read, decode, write
    commit_seconds: float
    epoch_seconds: float  # the whole of it
    retries: int  # each was also told as CommitRetried, which is what counts them

    def line(self) -> str:
        parts = [f"{whole(self.read)} read", f"{whole(self.written)} written"]
        if self.dead:
            parts.append(plural(sum(self.dead.values()), "dead letter") + reasons(self.dead))
        if self.dropped:
            parts.append(f"{whole(sum(self.dropped.values()))} dropped" + reasons(self.dropped))
        if self.filtered:
            parts.append(f"{whole(self.filtered)} filtered")
        attempt = f", attempt {self.retries + 1}" if self.retries else ""
        return (
            f"epoch {self.epoch} is version {self.version}: {', '.join(parts)}; "
            f"{plural(self.files, 'file')}, {size(self.bytes)} in {duration(self.epoch_seconds)} "
            f"(write {duration(self.write_seconds)}, commit {duration(self.commit_seconds)}{attempt})"
        )

    def apply(self, status: SinkStatus) -> None:
        status.epoch, status.generation, status.version = self.epoch, self.generation, self.version
        status.read += self.read
        status.written += self.written
        status.filtered += self.filtered
        _add(status.dead, self.dead)
        _add(status.dropped, self.dropped)
        status.files += self.files
        status.bytes += self.bytes
        status.commits += 1
        status.batch_min = self.read if status.batch_min is None else min(status.batch_min, self.read)
        status.batch_max = self.read if status.batch_max is None else max(status.batch_max, self.read)
        status.batch_sum += self.read
        status.commit_latency.observe(self.commit_seconds)
        status.write_latency.observe(self.write_seconds)
        status.epoch_latency.observe(self.epoch_seconds)
        status.last_epoch_seconds = self.epoch_seconds
        status.last_commit, status.last_commit_at, status.heard = status.now, status.at, status.now
        if status.lag is not None:  # until the next poll says it exactly
            status.lag = max(status.lag - self.read, 0)
        status.waiting_since = status.now if status.lag else None
        status.recent.append((status.now, self.written))
        while status.recent[0][0] < status.now - status.window:
            status.recent.popleft()


@dataclass(frozen=True)
class CommitRetried(Event):
    """A commit met another writer's and is tried again with the same files."""

    level = logging.DEBUG
    attempt: int
    reason: str

    def line(self) -> str:
        return f"commit attempt {self.attempt} was refused, trying again: {self.reason}"

    def apply(self, status: SinkStatus) -> None:
        status.commit_retries += 1


@dataclass(frozen=True)
class CommitFailed(Event):
    """A commit failed for good; the epoch is not done, so nothing is lost."""

    level = logging.WARNING
    code: str

    def line(self) -> str:
        return f"commit failed: {self.code}; its records are read again"

    def apply(self, status: SinkStatus) -> None:
        status.commits_failed += 1


@dataclass(frozen=True)
class SinkRetrying(Event):
    """The sink met an error that may pass, and starts again after a pause."""

    level = logging.WARNING
    code: str
    message: str
    in_seconds: float

    def line(self) -> str:
        return f"{self.code}: {self.message}; starting again in {age(self.in_seconds)}"

    def apply(self, status: SinkStatus) -> None:
        status.phase = "retrying"
        status.heard = status.now
        status.last_error = LastError(self.code, self.message, status.at, status.now + self.in_seconds)
        _add(status.errors, {self.code: 1})


@dataclass(frozen=True)
class SinkFailed(Event):
    """The sink met an error that will not pass, and stays down."""

    level = logging.ERROR
    code: str
    message: str

    def line(self) -> str:
        return f"{self.code}: {self.message}"

    def apply(self, status: SinkStatus) -> None:
        status.phase = "failed"
        status.last_error = LastError(self.code, self.message, status.at)
        _add(status.errors, {self.code: 1})


@dataclass(frozen=True)
class SinkStopped(Event):
    """The sink was asked to stop, or has drained its source, and is done. A failed sink stays failed."""

    level = logging.INFO
    rows: int = 0  # in this run, like the others
    dead_letters: int = 0
    epochs: int = 0

    def line(self) -> str:
        landed = f"{plural(self.rows, 'row')} and {plural(self.dead_letters, 'dead letter')}"
        return f"stopped; {landed} in {plural(self.epochs, 'epoch')}"

    def apply(self, status: SinkStatus) -> None:
        if status.phase != "failed":
            status.phase = "stopped"


@dataclass(frozen=True)
class DeadLettersFinished(Event):
    """A start committed the dead letters that a crash of the last owner had kept out."""

    level = logging.INFO
    epoch: int
    count: int

    def line(self) -> str:
        return (
            f"committed {plural(self.count, 'dead letter')} of epoch {self.epoch} that a crash had kept out"
        )


@dataclass(frozen=True)
class RecordsLost(Event):
    """The source has lost records; a gap row tells of it, and the sink goes on (on_data_loss: continue)."""

    level = logging.WARNING
    epoch: int
    version: int
    count: int  # offsets lost, 0 where that cannot be known
    message: str

    def line(self) -> str:
        return f"RecordsLost: {self.message}; a gap row in the dead-letter table tells of it"

    def apply(self, status: SinkStatus) -> None:
        status.epoch, status.version = self.epoch, self.version
        status.gaps += 1
        status.lost += self.count


@dataclass(frozen=True)
class SinkRewound(Event):
    """The table was restored, and the sink reads again what the restore took away (on_restore: rewind)."""

    level = logging.WARNING
    offsets: int  # by how many offsets the sink went back

    def line(self) -> str:
        return f"TableRestored: the table was set back; reading {plural(self.offsets, 'offset')} again"

    def apply(self, status: SinkStatus) -> None:
        _add(status.warnings, {"TableRestored": 1})


@dataclass(frozen=True)
class LogCheckpointFailed(Event):
    """An epoch is in, but the log checkpoint that was due after it could not be written."""

    level = logging.WARNING
    message: str

    def line(self) -> str:
        return f"LogCheckpointFailed: {self.message}; the next start reads a longer log"

    def apply(self, status: SinkStatus) -> None:
        _add(status.warnings, {"LogCheckpointFailed": 1})


@dataclass(frozen=True)
class SourceWarning(Event):
    """The source noticed something that does not stop it."""

    level = logging.WARNING
    code: str
    message: str

    def line(self) -> str:
        return f"{self.code}: {self.message}"

    def apply(self, status: SinkStatus) -> None:
        _add(status.warnings, {self.code: 1})


@dataclass(frozen=True, kw_only=True)
class Progress(Event):
    """How a sink is doing: the one line a minute where there is no terminal."""

    level = logging.INFO
    phase: Phase
    epoch: int
    rows_per_second: float  # since the last such line
    written: int
    lag: int | None
    seconds_since_last_commit: float | None
    dead_letters: int

    def line(self) -> str:
        ago = self.seconds_since_last_commit
        parts = [
            f"{short(self.rows_per_second)} rows/s",
            plural(self.written, "row"),
            f"lag {'unknown' if self.lag is None else whole(self.lag)}",
            f"epoch {self.epoch}",
            "no commit yet" if ago is None else f"last commit {age(ago)} ago",
            plural(self.dead_letters, "dead letter"),
        ]
        return ("" if self.phase == "running" else f"{self.phase}, ") + ", ".join(parts)


def _add(totals: dict[str, int], counts: Mapping[str, int]) -> None:
    for name, count in counts.items():
        totals[name] = totals.get(name, 0) + count
