"""The loop of one sink, in a thread of its own: wait until an epoch is due, run it, again.

An error that may pass starts the sink anew after a pause; any other ends this sink and no other.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rivermouth.errors import EngineFailed, EngineLost, RivermouthError
from rivermouth.observe.events import LagMeasured, SinkFailed, SinkRetrying, SinkStopped
from rivermouth.observe.observer import Observer
from rivermouth.pipeline import decide, plan
from rivermouth.pipeline.batches import FIRST_EPOCH
from rivermouth.pipeline.plan import Limits
from rivermouth.pipeline.sink import Sink
from rivermouth.records import Offsets

POLL_SECONDS = 0.2
IDLE_POLL_SECONDS = 1.0


@dataclass
class Loop:
    """Runs one sink until it is told to stop, has drained what was there, or fails for good."""

    name: str
    make_sink: Callable[[], Sink]
    observer: Observer
    stop: threading.Event
    once: bool
    failure: RivermouthError | None = None
    generation: int = 0  # the one this loop's sink owned last

    def run(self) -> None:
        """The body of the sink's thread; never raises."""
        failures = 0
        while not self.stop.is_set() and self.failure is None:
            since = _Progressing()
            try:
                self._own(since)
                break
            except Exception as raised:  # noqa: BLE001 - one sink's trouble must not reach another
                error = raised if isinstance(raised, RivermouthError) else _unexpected(raised)
                failures = 1 if since.epochs else failures + 1
                verdict = decide.after_failure(
                    error, failures=failures, once=self.once, stopping=self.stop.is_set()
                )
                if verdict.action == "stop":
                    break
                if verdict.action == "fail":
                    self.failure = error
                    self.observer.emit(SinkFailed(self.name, error.code, _told(error)))
                    break
                self.observer.emit(SinkRetrying(self.name, error.code, _told(error), verdict.pause))
                self.stop.wait(verdict.pause)
        done = next(sink for sink in self.observer.state.sinks() if sink.name == self.name)
        self.observer.emit(SinkStopped(self.name, done.written, done.dead_letters, done.commits))

    def _own(self, done: _Progressing) -> None:
        sink = self.make_sink()
        try:
            sink.claim(self.generation)
            self.generation = sink.generation
            if self.once:
                self._drain(sink, done)
            else:
                self._follow(sink, done)
        finally:
            sink.source.close()

    def _drain(self, sink: Sink, done: _Progressing) -> None:
        """Take the heads at the start as the end, and return when they are committed."""
        target = sink.look()
        while not self.stop.is_set():
            lag = sink.source.waiting(sink.position, target)
            self.observer.emit(LagMeasured(self.name, lag))
            if all(sink.position[p] >= target[p] for p in target):
                return
            sink.run_epoch(self._end(sink, target))
            done.epochs += 1

    def _follow(self, sink: Sink, done: _Progressing) -> None:
        limits = _limits(sink)
        first_seen: float | None = None
        quiet_polls = 0
        while not self.stop.is_set():
            heads = sink.look()
            waiting = sink.source.waiting(sink.position, heads)
            self.observer.emit(LagMeasured(self.name, waiting))
            now = time.monotonic()
            first_seen = (first_seen or now) if waiting else None
            if plan.due(waiting, now - (first_seen or now), limits):
                sink.run_epoch(self._end(sink, heads))
                done.epochs += 1
                quiet_polls = 0
                if all(sink.position[p] >= heads[p] for p in heads):  # what comes now has not waited yet
                    first_seen = None
                continue
            quiet_polls = 0 if waiting else quiet_polls + 1
            pause = IDLE_POLL_SECONDS if quiet_polls > 25 else POLL_SECONDS
            self.stop.wait(min(pause, max(limits.flush_seconds, 0.02)))

    def _end(self, sink: Sink, heads: Offsets) -> Offsets:
        most = _limits(sink).most
        if most is not None and sink.largest is None:
            most = min(most, FIRST_EPOCH)
        end = plan.share(sink.position, heads, most)
        return {p: o for p, o in end.items() if o > sink.position[p]}


@dataclass
class _Progressing:
    """How many epochs an ownership has committed: one is enough to call the trouble before it over."""

    epochs: int = 0


def _limits(sink: Sink) -> Limits:
    s = sink.settings
    most = None if sink.overwrite else sink.source.most(s.max_batch_size)
    return Limits(s.batch_size, s.flush_interval.total_seconds(), most)


def _told(error: RivermouthError) -> str:
    return error.message + (f" ({error.remedy})" if error.remedy else "")


def _unexpected(error: Exception) -> RivermouthError:
    """Whatever we did not foresee may pass; it is retried, and told with its type."""
    from py4j.protocol import Py4JNetworkError

    if isinstance(error, (Py4JNetworkError, ConnectionError)):  # the only connection of a loop is to the JVM
        return EngineLost("the Spark process ended")
    text: Any = str(error).strip().splitlines() or [""]
    wrapped = EngineFailed(f"{type(error).__name__}: {text[0]}")
    wrapped.__cause__ = error
    return wrapped
