from __future__ import annotations

import io
import os
import pty
import select
import subprocess
import sys
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from rivermouth.observe import Observer, log
from rivermouth.observe.display import Display
from rivermouth.observe.events import LagMeasured, SinkFailed, SinkRetrying, SinkStarted

if TYPE_CHECKING:
    from collections.abc import Callable

    from rivermouth.observe.events import EpochCommitted

    from .conftest import Clock


def _view(observer: Observer, width: int, height: int = 24) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height)
    with console.capture() as capture:
        console.print(Display(observer, console, note="http://127.0.0.1:9090/"))
    return [line.rstrip() for line in capture.get().splitlines()]


def _busy(observer: Observer, clock: Clock, committed: Callable[..., EpochCommitted]) -> None:
    observer.emit(SinkStarted("orders", 3, 11, 4))
    observer.emit(LagMeasured("orders", 2_345_678))
    clock.go(2)
    observer.emit(committed(epoch=1234, read=0, written=1_234_567, files=12, dead={"InvalidJson": 4321}))
    clock.go(3)


def test_eighty_columns(observer: Observer, clock: Clock, committed: Callable[..., EpochCommitted]) -> None:
    _busy(observer, clock, committed)
    assert _view(observer, 80) == [
        "shop · 2 sinks · 247k rows/s · 1.23M rows · up 5.0s · http://127.0.0.1:9090/",
        "sink    state     epoch  rows/s   rows    lag   took  files  commit  dead",
        "orders  running    1234    247k  1.23M  2.35M  400ms     12      3s  4321",
        "clicks  starting      0       0      0      -      -      0       -     0",
    ]


def test_a_wide_terminal(observer: Observer, clock: Clock, committed: Callable[..., EpochCommitted]) -> None:
    _busy(observer, clock, committed)
    assert _view(observer, 120)[1:] == [
        "sink    state     epoch  rows/s       rows        lag  epoch time  files  last commit  dead letters",
        "orders  running   1,234    247k  1,234,567  2,345,678       400ms     12       3s ago         4,321",
        "clicks  starting      0       0          0          -           -      0            -             0",
    ]


@pytest.mark.parametrize("width", [80, 90, 100, 120, 200])
def test_only_a_name_is_ever_cut(clock: Clock, committed: Callable[..., EpochCommitted], width: int) -> None:
    name = "clicks-of-the-mobile-application-and-of-the-web-shop-in-all-countries"
    observer = Observer("shop", {name: timedelta(seconds=1)}, clock=clock)
    observer.emit(SinkStarted(name, 1, 0, 1))
    observer.emit(SinkRetrying(name, "EngineFailed", "gone", 1))
    observer.emit(LagMeasured(name, 99_999))
    observer.emit(
        committed(name, epoch=99_999, read=0, written=99_999, files=99_999, dead={"InvalidJson": 99_999})
    )
    heads, row = _view(observer, width)[1:3]
    assert max(map(len, (heads, row))) <= width
    assert "…" not in heads + row.split(" ", 1)[1]
    assert row.startswith(name[:6])
    assert row.replace(",", "").split().count("99999") == 5


def test_errors_stand_below(observer: Observer) -> None:
    observer.emit(SinkRetrying("orders", "SourceUnavailable", "no\nanswer [from] \x1b[2Jbroker", 8))
    observer.emit(SinkFailed("clicks", "SchemaMismatch", "columns differ"))
    view = _view(observer, 80)
    assert [line.split()[:2] for line in view[2:4]] == [["orders", "retrying"], ["clicks", "failed"]]
    assert view[4:] == [
        "orders: SourceUnavailable: no answer [from] \\x1b[2Jbroker; starting again in 8s",
        "clicks: SchemaMismatch: columns differ",
    ]


def test_a_long_error_does_not_push_the_table_off_the_screen(observer: Observer) -> None:
    observer.emit(SinkRetrying("orders", "EngineFailed", "Job aborted due to stage failure. " * 100, 8))
    view = _view(observer, 80)
    assert len(view) == 6
    assert view[4].startswith("orders: EngineFailed: Job aborted")
    assert view[5].endswith("…; starting again in 8s")


def test_a_stuck_sink_shows(observer: Observer, clock: Clock) -> None:
    observer.emit(SinkStarted("orders", 1, 0, 1))
    clock.go(61)
    assert _view(observer, 80)[2].split()[:2] == ["orders", "stuck"]


def test_more_sinks_than_lines_show_the_sick_ones_first(clock: Clock) -> None:
    observer = Observer("shop", {f"sink-{n}": timedelta(seconds=1) for n in range(40)}, clock=clock)
    for n in range(40):
        observer.emit(SinkStarted(f"sink-{n}", 1, 0, 1))
    for n in range(30, 37):
        observer.emit(SinkFailed(f"sink-{n}", "Fenced", "another instance took over"))
    view = _view(observer, 80, height=24)
    assert len(view) <= 24
    assert [line.split()[0] for line in view[2:9]] == [f"sink-{n}" for n in range(30, 37)]
    assert "and 31 more sinks" in view
    assert view[-1] == "and 3 more errors"


# Runs in a process of its own whose stderr is a pseudo-terminal.
SCRIPT = """
import logging, sys
from datetime import timedelta
from rivermouth.observe import Observer, log
from rivermouth.observe.display import Display
from rivermouth.observe.events import SinkStarted, SinkFailed
log.configure()
observer = Observer("shop", {"orders": timedelta(seconds=1)})
with Display(observer):
    observer.emit(SinkStarted("orders", 1, 0, 1))
    observer.emit(SinkFailed("orders", "BadRecord", "[bold]" + "x" * 200))
logging.getLogger("rivermouth").warning("afterwards")
"""


def test_log_lines_stay_whole_above_the_table_of_a_real_terminal() -> None:
    leader, follower = pty.openpty()
    env = {**os.environ, "COLUMNS": "80", "LINES": "24", "TERM": "xterm"}
    process = subprocess.Popen([sys.executable, "-c", SCRIPT], stderr=follower, stdout=follower, env=env)
    os.close(follower)
    output = b""
    while select.select([leader], [], [], 60)[0]:
        try:
            output += os.read(leader, 65536)
        except OSError:  # the other side is closed
            break
    assert process.wait(60) == 0
    os.close(leader)
    text = output.decode()
    assert "BadRecord: [bold]" + "x" * 200 in text  # one unbroken line: the terminal wraps it, not we
    assert text.rindex("orders: starts anew") < text.rindex("epoch")
    assert text.rindex("took") < text.rindex("WARNING rivermouth: afterwards")


def test_after_the_display_log_lines_go_to_stderr_again(
    observer: Observer, capsys: pytest.CaptureFixture[str]
) -> None:
    log.configure()
    screen = io.StringIO()
    with Display(observer, Console(file=screen, width=80, force_terminal=True)):
        observer.emit(SinkStarted("orders", 1, 0, 1))
        assert capsys.readouterr().err == ""
        assert "INFO orders: starts anew" in screen.getvalue()
    observer.emit(SinkStarted("clicks", 1, 0, 1))
    assert "INFO clicks: starts anew" in capsys.readouterr().err
