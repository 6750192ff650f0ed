from __future__ import annotations

import json
import logging
import re
from typing import TYPE_CHECKING

import pytest

from rivermouth.observe import log
from rivermouth.observe.events import LagMeasured, SinkFailed, SinkRetrying, SinkStarted, SinkStopped
from rivermouth.observe.report import Reporter

if TYPE_CHECKING:
    from collections.abc import Callable

    from rivermouth.observe import Observer
    from rivermouth.observe.events import EpochCommitted

    from .conftest import Clock

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"


def _lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    out, err = capsys.readouterr()
    assert out == ""
    return err.splitlines()


def test_text_lines(observer: Observer, capsys: pytest.CaptureFixture[str]) -> None:
    log.configure("text")
    observer.emit(SinkStarted("orders", 3, 11, 4))
    (line,) = _lines(capsys)
    assert re.fullmatch(TIME + r"Z INFO orders: goes on after epoch 11, generation 3, 4 partitions", line)


def test_json_lines(
    observer: Observer, committed: Callable[..., EpochCommitted], capsys: pytest.CaptureFixture[str]
) -> None:
    log.configure("json", verbose=True)
    observer.emit(committed(epoch=12))
    observer.emit(SinkRetrying("orders", "SourceUnavailable", "no answer\nfrom ü", 2))
    logging.getLogger("rivermouth.spark").warning("jars of %s", "yesterday")
    epoch, retrying, other = (json.loads(line) for line in _lines(capsys))
    assert re.fullmatch(TIME + r"\.\d{3}Z", epoch.pop("time"))
    assert epoch.pop("message").startswith("epoch 12 is version 7: 100 read")
    assert epoch == {
        "level": "debug",
        "event": "EpochCommitted",
        "pipeline": "shop",
        "sink": "orders",
        "epoch": 12,
        "generation": 3,
        "version": 7,
        "read": 100,
        "written": 90,
        "dead": {"InvalidJson": 4, "WrongType": 2},
        "dropped": {"WrongType": 1},
        "filtered": 3,
        "files": 2,
        "bytes": 5000,
        "write_seconds": 0.3,
        "commit_seconds": 0.02,
        "epoch_seconds": 0.4,
        "retries": 0,
    }
    assert (retrying["event"], retrying["code"]) == ("SinkRetrying", "SourceUnavailable")
    assert (retrying["message"], retrying["in_seconds"]) == ("no answer\nfrom ü", 2)
    assert (other["logger"], other["message"]) == ("rivermouth.spark", "jars of yesterday")


def test_epochs_are_told_only_when_verbose(
    observer: Observer, committed: Callable[..., EpochCommitted], capsys: pytest.CaptureFixture[str]
) -> None:
    log.configure()
    observer.emit(committed())
    assert _lines(capsys) == []
    log.configure(verbose=True)
    observer.emit(committed())
    assert len(_lines(capsys)) == 1  # configured twice, written once


def test_engines_are_silent_unless_verbose(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure()
    logging.getLogger("py4j.clientserver").error("There was an exception while executing")
    assert _lines(capsys) == []
    log.configure(verbose=True)
    logging.getLogger("py4j.clientserver").error("There was an exception while executing")
    assert len(_lines(capsys)) == 1
    logging.getLogger("py4j.clientserver").debug("every single command")
    assert _lines(capsys) == []


@pytest.mark.parametrize("format", ["text", "json"])
def test_stack_traces_only_when_verbose(format: log.Format, capsys: pytest.CaptureFixture[str]) -> None:
    for verbose in (False, True):
        log.configure(format, verbose)
        try:
            raise ValueError("boom")
        except ValueError:
            logging.getLogger("rivermouth").exception("it went wrong")
        text = "\n".join(_lines(capsys))
        assert "it went wrong" in text
        assert ("Traceback" in text) is verbose


def test_a_message_cannot_forge_a_line_or_drive_the_terminal(
    observer: Observer, capsys: pytest.CaptureFixture[str]
) -> None:
    log.configure()
    observer.emit(SinkFailed("orders", "BadRecord", "a\n2026-01-01T00:00:00Z INFO clicks: fine\x1b[2J\r\x85"))
    first, second = _lines(capsys)
    assert first.endswith("ERROR orders: BadRecord: a")
    assert second == "  2026-01-01T00:00:00Z INFO clicks: fine\\x1b[2J\\x0d\\x85"


def test_a_line_of_progress_per_sink(
    observer: Observer,
    clock: Clock,
    committed: Callable[..., EpochCommitted],
    capsys: pytest.CaptureFixture[str],
) -> None:
    log.configure()
    reporter = Reporter(observer)
    observer.emit(SinkStarted("orders", 1, 0, 1))
    observer.emit(LagMeasured("orders", 2100))
    observer.emit(committed(written=600, read=600))
    clock.go(60)
    reporter.report()
    observer.emit(committed(epoch=2, written=72_000, read=0))
    clock.go(60)
    reporter.report()
    assert [line.split(" ", 1)[1] for line in _lines(capsys)][1:] == [
        "INFO orders: 10 rows/s, 600 rows, lag 1,500, epoch 1, last commit 1m00s ago, 6 dead letters",
        "INFO clicks: starting, 0 rows/s, 0 rows, lag unknown, epoch 0, no commit yet, 0 dead letters",
        "INFO orders: 1.20k rows/s, 72,600 rows, lag 1,500, epoch 2, last commit 1m00s ago, 12 dead letters",
        "INFO clicks: starting, 0 rows/s, 0 rows, lag unknown, epoch 0, no commit yet, 0 dead letters",
    ]
    observer.emit(SinkStopped("orders"))
    observer.emit(SinkFailed("clicks", "Fenced", "another instance took over"))
    _lines(capsys)
    reporter.report()
    assert _lines(capsys) == []


def test_progress_as_json(observer: Observer, capsys: pytest.CaptureFixture[str]) -> None:
    log.configure("json")
    observer.emit(SinkStarted("orders", 1, 0, 1))
    Reporter(observer).report()
    progress = json.loads(_lines(capsys)[1])
    assert (progress["event"], progress["sink"], progress["phase"]) == ("Progress", "orders", "running")
    assert progress["rows_per_second"] == 0
    assert progress["lag"] is None


def test_progress_is_no_sign_of_life(observer: Observer, clock: Clock) -> None:
    from rivermouth.observe.health import ready

    for name in ("orders", "clicks"):
        observer.emit(SinkStarted(name, 1, 0, 1))
    clock.go(61)
    Reporter(observer).report()
    assert list(ready(observer.state)[1]["problems"]) == ["orders"]


def test_the_reporter_reports_by_itself_and_ends(observer: Observer) -> None:
    import threading

    told = threading.Event()
    observer.handlers = (lambda _event: told.set(),)
    with Reporter(observer, interval=0.01) as reporter:
        assert told.wait(30)
    assert not reporter._thread.is_alive()
