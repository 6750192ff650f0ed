"""What is known of every sink, built from its events: metrics, health and the display all read it."""

from __future__ import annotations

import copy
import threading
import time
from bisect import bisect_left
from collections import deque
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rivermouth.observe.events import Event

Phase = Literal["starting", "running", "retrying", "failed", "stopped"]
PHASES: tuple[Phase, ...] = ("starting", "running", "retrying", "failed", "stopped")

# Upper bounds in seconds: a commit is quick, a Spark job may take minutes.
COMMIT_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
JOB_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)


class Latency:
    """Durations, counted in buckets."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.seconds = 0.0
        self.count = 0

    def observe(self, seconds: float) -> None:
        """Count one duration."""
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.seconds += seconds
        self.count += 1

    def cumulative(self) -> list[tuple[str, int]]:
        """Each upper bound with how many durations were at most that long, as Prometheus wants it."""
        total, out = 0, []
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            total += count
            out.append((bound, total))
        return out

    @property
    def average_ms(self) -> float:
        """The mean in milliseconds; 0 before the first."""
        return self.seconds / self.count * 1000 if self.count else 0.0


@dataclass(frozen=True)
class LastError:
    """The last thing that went wrong with a sink."""

    code: str
    message: str
    at: datetime
    retry_at: float | None = None  # on the state's clock; None: it will not be tried again


@dataclass
class SinkStatus:
    """One sink: where it stands, and what it has done since the process started.

    Times without a zone are seconds on the state's clock, which only goes forward. `now` and `at` are the
    moment of the event being applied, and in a copy the moment it was taken.
    """

    name: str
    flush_interval: float
    since: float
    now: float
    at: datetime
    phase: Phase = "starting"
    epoch: int = 0
    generation: int = 0
    version: int = 0
    lag: int | None = None  # None: not measured yet
    running_since: float | None = None
    waiting_since: float | None = None  # records wait, and nothing was committed since
    heard: float = 0.0  # when the sink's loop last said anything
    last_commit: float | None = None
    last_commit_at: datetime | None = None
    last_epoch_seconds: float = 0.0
    last_error: LastError | None = None

    read: int = 0
    written: int = 0
    filtered: int = 0
    dead: dict[str, int] = field(default_factory=dict)  # by reason
    dropped: dict[str, int] = field(default_factory=dict)  # by reason
    files: int = 0
    bytes: int = 0
    commits: int = 0
    commits_failed: int = 0
    commit_retries: int = 0
    batch_min: int | None = None
    batch_max: int | None = None
    batch_sum: int = 0
    commit_latency: Latency = field(default_factory=lambda: Latency(COMMIT_BUCKETS))
    write_latency: Latency = field(default_factory=lambda: Latency(JOB_BUCKETS))
    epoch_latency: Latency = field(default_factory=lambda: Latency(JOB_BUCKETS))
    gaps: int = 0  # losses of the source that the sink went on behind
    lost: int = 0  # offsets in them, where that is known
    errors: dict[str, int] = field(default_factory=dict)  # by code
    warnings: dict[str, int] = field(default_factory=dict)  # by code
    recent: deque[tuple[float, int]] = field(default_factory=deque)  # commits: when, rows

    @property
    def dead_letters(self) -> int:
        """Dead letters of every reason."""
        return sum(self.dead.values())

    @property
    def failed(self) -> int:
        """Records that did not become rows because they were bad: dead letters and dropped ones."""
        return self.dead_letters + sum(self.dropped.values())

    @property
    def window(self) -> float:
        """The seconds `rows_per_second` looks back: long enough that a steady sink looks steady."""
        return max(10.0, 2 * self.flush_interval)

    @property
    def patience(self) -> float:
        """The seconds after which a sink that should have committed counts as stuck."""
        return max(60.0, 3 * self.flush_interval + self.last_epoch_seconds)

    @property
    def rows_per_second(self) -> float:
        """Rows committed lately, per second."""
        if self.running_since is None:
            return 0.0
        rows = sum(n for at, n in self.recent if at >= self.now - self.window)
        return rows / max(min(self.window, self.now - self.running_since), 0.1)

    @property
    def since_commit(self) -> float:
        """Seconds since the last commit, or since the process started if there was none."""
        return max(self.now - (self.since if self.last_commit is None else self.last_commit), 0.0)

    @property
    def elapsed(self) -> float:
        """Seconds since the process began to watch the sink."""
        return self.now - self.since


class State:
    """Every sink of a pipeline. Safe to use from many threads."""

    def __init__(
        self,
        pipeline: str,
        sinks: Mapping[str, timedelta],
        *,
        reasons: Iterable[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`sinks` gives each sink's flush interval; `reasons` are the dead-letter reasons to count from 0."""
        self.pipeline = pipeline
        self.clock = clock
        self.started = clock()
        self._lock = threading.RLock()  # reentrant: a signal handler may emit in the middle of an event
        self._reasons = tuple(reasons)
        self._sinks = {name: self._new(name, interval) for name, interval in sinks.items()}

    def _new(self, name: str, flush_interval: timedelta) -> SinkStatus:
        now, at = self._moment()
        counts = dict.fromkeys(self._reasons, 0)
        seconds = flush_interval.total_seconds()
        return SinkStatus(name, seconds, now, now, at, heard=now, dead=dict(counts), dropped=dict(counts))

    def apply(self, event: Event) -> None:
        """Let an event change what is known of its sink, all at once."""
        with self._lock:
            if event.sink not in self._sinks:
                self._sinks[event.sink] = self._new(event.sink, timedelta())
            status = self._sinks[event.sink]
            status.now, status.at = self._moment()
            event.apply(status)

    def sinks(self) -> list[SinkStatus]:
        """A copy of every sink as of one moment, so that its numbers agree with each other."""
        with self._lock:
            now, at = self._moment()
            return [replace(copy.deepcopy(status), now=now, at=at) for status in self._sinks.values()]

    def _moment(self) -> tuple[float, datetime]:
        return self.clock(), datetime.now(timezone.utc)

    @property
    def uptime(self) -> float:
        """Seconds since the process started."""
        return self.clock() - self.started
