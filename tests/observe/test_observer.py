from __future__ import annotations

import logging
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from rivermouth.observe.events import (
    CommitFailed,
    CommitRetried,
    Event,
    LagMeasured,
    LogCheckpointFailed,
    SinkFailed,
    SinkRetrying,
    SinkStarted,
    SinkStopped,
    SourceWarning,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rivermouth.observe import Observer
    from rivermouth.observe.events import EpochCommitted
    from rivermouth.observe.state import SinkStatus

    from .conftest import Clock


def _sink(observer: Observer, name: str = "orders") -> SinkStatus:
    return next(sink for sink in observer.state.sinks() if sink.name == name)


def test_a_sinks_life_is_followed(observer: Observer, committed: Callable[..., EpochCommitted]) -> None:
    assert _sink(observer).phase == "starting"
    observer.emit(SinkStarted("orders", generation=3, epoch=11, positions=4))
    assert (_sink(observer).phase, _sink(observer).epoch, _sink(observer).generation) == ("running", 11, 3)
    observer.emit(committed(epoch=12, version=40))
    assert (_sink(observer).epoch, _sink(observer).version) == (12, 40)
    observer.emit(SinkRetrying("orders", "SourceUnavailable", "no answer", 4))
    sink = _sink(observer)
    assert sink.phase == "retrying"
    assert sink.last_error is not None
    assert (sink.last_error.code, sink.last_error.message) == ("SourceUnavailable", "no answer")
    assert sink.last_error.retry_at == sink.now + 4
    observer.emit(SinkStarted("orders", generation=4, epoch=12, positions=4))
    assert _sink(observer).phase == "running"
    assert _sink(observer).written == 90  # a restart forgets nothing
    observer.emit(SinkStopped("orders"))
    assert _sink(observer).phase == "stopped"
    assert _sink(observer, "clicks").phase == "starting"


def test_a_failed_sink_stays_failed_when_its_loop_ends(observer: Observer) -> None:
    observer.emit(SinkFailed("orders", "Fenced", "another instance took over"))
    observer.emit(SinkStopped("orders"))
    assert _sink(observer).phase == "failed"
    assert _sink(observer).errors == {"Fenced": 1}


def test_warnings_are_counted_by_code(observer: Observer) -> None:
    observer.emit(LogCheckpointFailed("orders", "disk full"))
    observer.emit(SourceWarning("orders", "TopicMissing", "no topic orders yet"))
    observer.emit(SourceWarning("orders", "TopicMissing", "no topic orders yet"))
    assert _sink(observer).warnings == {"LogCheckpointFailed": 1, "TopicMissing": 2}


def test_lag_falls_with_a_commit_until_it_is_measured_again(
    observer: Observer, committed: Callable[..., EpochCommitted]
) -> None:
    assert _sink(observer).lag is None
    observer.emit(LagMeasured("orders", 150))
    observer.emit(committed(read=100))
    assert _sink(observer).lag == 50
    observer.emit(committed(read=100))
    assert _sink(observer).lag == 0
    observer.emit(LagMeasured("orders", 7))
    assert _sink(observer).lag == 7


def test_rows_per_second_looks_back_over_a_window(
    observer: Observer, clock: Clock, committed: Callable[..., EpochCommitted]
) -> None:
    observer.emit(SinkStarted("orders", 1, 0, 1))
    for _ in range(4):
        clock.go(1)
        observer.emit(committed(written=1000))
    assert _sink(observer).rows_per_second == 1000  # four seconds old: over those four seconds
    for _ in range(20):
        clock.go(1)
        observer.emit(committed(written=500))
    # The window is 10 s: both its ends are commits.
    assert _sink(observer).rows_per_second == 550
    assert len(_sink(observer).recent) == 11  # what is older is forgotten
    clock.go(11)
    assert _sink(observer).rows_per_second == 0


def test_a_sink_that_flushes_once_a_minute_has_a_steady_rate(
    observer: Observer, clock: Clock, committed: Callable[..., EpochCommitted]
) -> None:
    observer.emit(SinkStarted("clicks", 1, 0, 1))
    for _ in range(5):
        clock.go(60)
        observer.emit(committed("clicks", written=60_000))
    clock.go(59)
    assert _sink(observer, "clicks").rows_per_second == 1000


def test_threads_hammering_emit_lose_nothing(
    observer: Observer, committed: Callable[..., EpochCommitted]
) -> None:
    seen: list[Event] = []
    observer.handlers = (seen.append,)
    threads, rounds = 8, 500
    event = {name: committed(name) for name in ("orders", "clicks")}
    snapshots: list[SinkStatus] = []
    done = threading.Event()

    def hammer(number: int) -> None:
        name = ("orders", "clicks")[number % 2]
        for _ in range(rounds):
            observer.emit(event[name])
            observer.emit(CommitRetried(name, 1, "conflict"))
            observer.emit(CommitFailed(name, "DeltaCommitFailed"))

    def watch() -> None:
        while not done.is_set():
            snapshots.extend(observer.state.sinks())

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # many more chances to get it wrong
    try:
        workers = [threading.Thread(target=hammer, args=(n,)) for n in range(threads)]
        watcher = threading.Thread(target=watch)
        for thread in (watcher, *workers):
            thread.start()
        for thread in workers:
            thread.join()
        done.set()
        watcher.join()
    finally:
        sys.setswitchinterval(interval)
    each = threads // 2 * rounds
    for sink in observer.state.sinks():
        assert (sink.read, sink.written, sink.filtered) == (100 * each, 90 * each, 3 * each)
        assert sink.dead == {"InvalidJson": 4 * each, "WrongType": 2 * each}
        assert sink.dropped == {"InvalidJson": 0, "WrongType": each}
        assert (sink.commits, sink.commit_retries, sink.commits_failed) == (each, each, each)
        assert sink.commit_latency.count == each
    assert len(seen) == threads * rounds * 3
    assert snapshots
    for sink in snapshots:  # also in between: never half an event
        assert sink.read == sink.written + sink.failed + sink.filtered


def test_a_handler_that_fails_does_not_fail_the_sink(
    observer: Observer, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[Event] = []

    def bad(event: Event) -> None:
        raise ValueError("broken dashboard")

    observer.handlers = (bad, seen.append)
    observer.emit(SinkStopped("orders"))
    assert seen == [SinkStopped("orders")]
    assert "a handler of SinkStopped failed" in caplog.text


def test_a_signal_handler_may_emit_in_the_middle_of_an_event(observer: Observer) -> None:
    class Interrupted(Event):
        def apply(self, status: SinkStatus) -> None:
            observer.emit(SinkStopped("orders"))

    thread = threading.Thread(target=observer.emit, args=(Interrupted("orders"),), daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()
    assert _sink(observer).phase == "stopped"


def test_an_epochs_line_accounts_for_every_record(committed: Callable[..., EpochCommitted]) -> None:
    assert committed(epoch=12, retries=2).line() == (
        "epoch 12 is version 7: 100 read, 90 written, 6 dead letters (InvalidJson 4, WrongType 2), "
        "1 dropped (WrongType 1), 3 filtered; 2 files, 5.00 kB in 400ms (write 300ms, commit 20ms, attempt 3)"
    )
    assert committed(dead={}, dropped={}, filtered=0, written=100).line() == (
        "epoch 1 is version 7: 100 read, 100 written; 2 files, 5.00 kB in 400ms (write 300ms, commit 20ms)"
    )


def test_logs_are_quiet_when_all_is_well(
    observer: Observer, committed: Callable[..., EpochCommitted], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="rivermouth"):
        observer.emit(SinkStarted("orders", 1, 0, 1))
        for _ in range(5):
            observer.emit(LagMeasured("orders", 100))
            observer.emit(committed())
        observer.emit(SinkStopped("orders"))
    assert [record.getMessage() for record in caplog.records] == [
        "starts anew, generation 1, 1 partition",
        "stopped; 0 rows and 0 dead letters in 0 epochs",
    ]


@pytest.mark.parametrize(
    ("event", "level"),
    [
        (SinkRetrying("orders", "EngineFailed", "job aborted", 1), logging.WARNING),
        (CommitFailed("orders", "DeltaCommitFailed"), logging.WARNING),
        (SinkFailed("orders", "SchemaMismatch", "columns differ"), logging.ERROR),
        (LogCheckpointFailed("orders", "disk full"), logging.WARNING),
        (SourceWarning("orders", "TopicMissing", "no topic orders yet"), logging.WARNING),
    ],
)
def test_trouble_is_logged(
    observer: Observer, caplog: pytest.LogCaptureFixture, event: Event, level: int
) -> None:
    observer.emit(event)
    (record,) = caplog.records
    assert record.levelno == level
    assert getattr(event, "code", "LogCheckpointFailed") in record.getMessage()
