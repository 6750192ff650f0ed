from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from rivermouth.observe import log
from rivermouth.observe.events import LagMeasured, SinkFailed, SinkRetrying, SinkStarted, SinkStopped
from rivermouth.observe.server import PortUnavailable, Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rivermouth.observe import Observer
    from rivermouth.observe.events import EpochCommitted

    from .conftest import Clock


@pytest.fixture
def server(observer: Observer) -> Iterator[Server]:
    with Server(observer.state) as running:
        yield running


def _get(server: Server, page: str) -> tuple[int, str, str]:
    try:
        with urllib.request.urlopen(server.url + page, timeout=10) as answer:
            return answer.status, answer.headers["content-type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["content-type"], error.read().decode()


def _json(server: Server, page: str) -> tuple[int, Any]:
    status, kind, body = _get(server, page)
    assert kind == "application/json"
    return status, json.loads(body)


def _start_all(observer: Observer) -> None:
    for name in ("orders", "clicks"):
        observer.emit(SinkStarted(name, generation=1, epoch=0, positions=1))


def test_a_scrape(server: Server, observer: Observer, committed: Callable[..., EpochCommitted]) -> None:
    observer.emit(committed())
    status, kind, body = _get(server, "metrics")
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    written = {
        sample.labels["sink"]: sample.value
        for family in parse(body)
        for sample in family.samples
        if sample.name == "rivermouth_records_written_total"
    }
    assert written == {"orders": 90, "clicks": 0}


def test_live_says_yes_whatever_the_sinks_do(server: Server, observer: Observer) -> None:
    observer.emit(SinkFailed("orders", "Fenced", "another instance took over"))
    assert _json(server, "live") == (200, {"live": True, "pipeline": "shop"})


def test_the_index_names_the_pages(server: Server) -> None:
    status, _, body = _get(server, "")
    assert status == 200
    for page in ("/metrics", "/health", "/ready", "/live"):
        assert page in body
        assert _get(server, page[1:])[0] in (200, 503)
    assert _get(server, "nothing")[0] == 404


def test_ready_goes_green_red_and_green(server: Server, observer: Observer) -> None:
    assert _json(server, "ready") == (
        503,
        {"ready": False, "pipeline": "shop", "problems": {"orders": "starting", "clicks": "starting"}},
    )
    _start_all(observer)
    assert _json(server, "ready") == (200, {"ready": True, "pipeline": "shop", "problems": {}})
    observer.emit(SinkRetrying("orders", "SourceUnavailable", "no answer", 2))
    status, body = _json(server, "ready")
    assert (status, body["problems"]) == (503, {"orders": "retrying: SourceUnavailable: no answer"})
    observer.emit(SinkStarted("orders", generation=2, epoch=0, positions=1))
    assert _json(server, "ready")[0] == 200
    observer.emit(SinkFailed("clicks", "BadRecord", "broken"))
    assert _json(server, "ready")[1]["problems"] == {"clicks": "failed: BadRecord: broken"}
    observer.emit(SinkStopped("orders"))
    assert set(_json(server, "ready")[1]["problems"]) == {"clicks", "orders"}


def test_ready_goes_red_when_records_wait_and_nothing_is_committed(
    server: Server, observer: Observer, clock: Clock, committed: Callable[..., EpochCommitted]
) -> None:
    _start_all(observer)

    def poll(lag: int, seconds: int) -> tuple[int, dict[str, str]]:
        for _ in range(seconds):
            clock.go(1)
            observer.emit(LagMeasured("orders", lag))
            observer.emit(LagMeasured("clicks", 0))
        status, body = _json(server, "ready")
        return status, body["problems"]

    assert poll(lag=0, seconds=7200) == (200, {})  # idle for hours is well
    assert poll(lag=10, seconds=61) == (200, {})  # 60 s since they began to wait
    status, problems = poll(lag=1000, seconds=1)
    assert status == 503
    assert problems == {"orders": "stuck: 1,000 records in wait and no commit for 1m01s"}
    observer.emit(committed(read=100))
    assert poll(lag=900, seconds=60) == (200, {})  # a commit is a sign of life, whatever still waits
    assert poll(lag=900, seconds=1)[0] == 503
    assert poll(lag=0, seconds=1) == (200, {})


def test_a_crash_loop_does_not_hide_that_nothing_is_committed(
    server: Server, observer: Observer, clock: Clock
) -> None:
    _start_all(observer)
    for generation in range(8):
        observer.emit(LagMeasured("orders", 10))
        observer.emit(SinkRetrying("orders", "EngineFailed", "job aborted", 10))
        clock.go(10)
        observer.emit(SinkStarted("orders", generation, 0, 1))
    observer.emit(LagMeasured("clicks", 0))
    assert _json(server, "ready")[1]["problems"] == {
        "orders": "stuck: 10 records in wait and no commit for 1m20s"
    }


def test_a_slow_sink_is_given_more_time(
    server: Server, observer: Observer, clock: Clock, committed: Callable[..., EpochCommitted]
) -> None:
    _start_all(observer)
    observer.emit(committed("clicks", epoch_seconds=20))
    for _ in range(201):  # 3 x flush_interval (60 s) + 20 s, from the first sight of a waiting record
        clock.go(1)
        observer.emit(LagMeasured("orders", 0))
        observer.emit(LagMeasured("clicks", 5))
    assert _json(server, "ready")[0] == 200
    clock.go(1)
    assert list(_json(server, "ready")[1]["problems"]) == ["clicks"]


def test_a_silent_sink_is_stuck(server: Server, observer: Observer, clock: Clock) -> None:
    _start_all(observer)
    observer.emit(LagMeasured("orders", 0))
    clock.go(61)
    assert _json(server, "ready")[1]["problems"] == {"orders": "stuck: no sign of life for 1m01s"}
    observer.emit(LagMeasured("orders", 0))
    assert _json(server, "ready")[0] == 200


def test_health_shows_every_sink(
    server: Server, observer: Observer, clock: Clock, committed: Callable[..., EpochCommitted]
) -> None:
    assert _json(server, "health")[1]["status"] == "starting"
    _start_all(observer)
    clock.go(10)
    observer.emit(LagMeasured("orders", 200))
    observer.emit(committed(epoch=5))
    status, body = _json(server, "health")
    assert (status, body["status"], body["pipeline"], body["uptime_seconds"]) == (200, "ok", "shop", 10.0)
    orders = body["sinks"]["orders"]
    assert orders.pop("last_commit") is not None
    assert orders == {
        "state": "running",
        "problem": None,
        "epoch": 5,
        "generation": 3,
        "table_version": 7,
        "lag_records": 100,
        "rows_per_second": 9.0,
        "records_read": 100,
        "records_written": 90,
        "records_filtered": 3,
        "dead_letters": {"InvalidJson": 4, "WrongType": 2},
        "records_dropped": {"WrongType": 1},
        "gaps": 0,
        "offsets_lost": 0,
        "files_created": 2,
        "bytes_written": 5000,
        "commits_success": 1,
        "commits_failed": 0,
        "last_epoch_seconds": 0.4,
        "last_error": None,
    }
    assert body["sinks"]["clicks"]["last_commit"] is None
    observer.emit(SinkFailed("orders", "Fenced", "another instance took over"))
    body = _json(server, "health")[1]
    assert body["status"] == "degraded"
    assert body["sinks"]["orders"]["last_error"]["code"] == "Fenced"
    observer.emit(SinkFailed("clicks", "Fenced", "another instance took over"))
    status, body = _json(server, "health")
    assert (status, body["status"]) == (200, "down")


def test_a_taken_port_is_a_clear_error_at_once(server: Server, observer: Observer) -> None:
    with pytest.raises(PortUnavailable) as caught:
        Server(observer.state, port=server.port).start()
    assert str(caught.value) == (
        f"PortUnavailable: cannot listen on 127.0.0.1:{server.port}: Address already in use "
        "(set metrics_port to a free port, or to 0 to have one chosen)"
    )
    with pytest.raises(PortUnavailable, match=r"cannot listen on no\.such\.host\.invalid:9090"):
        Server(observer.state, "no.such.host.invalid", 9090).start()


def test_stop_closes_the_port_and_it_can_be_had_again(observer: Observer) -> None:
    first = Server(observer.state)
    first.start()
    # A scraper that keeps its connection open must not hold up the end.
    with socket.create_connection(("127.0.0.1", first.port)) as kept:
        kept.sendall(b"GET /live HTTP/1.1\r\nhost: x\r\n\r\n")
        assert kept.recv(100).startswith(b"HTTP/1.1 200")
        first.stop()
        first.stop()
    assert "rivermouth-http" not in {thread.name for thread in threading.enumerate()}
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", first.port))
    with Server(observer.state, port=first.port) as second:
        assert second.port == first.port
        assert _get(second, "live")[0] == 200


def test_it_listens_on_loopback_only(server: Server) -> None:
    # Another address of this very machine: 127.0.0.2 reaches a socket bound to all, but not to 127.0.0.1.
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.2", server.port), timeout=5)


def test_requests_leave_no_log_lines(observer: Observer, capsys: pytest.CaptureFixture[str]) -> None:
    log.configure()
    with Server(observer.state) as server:
        for page in ("metrics", "ready", "nothing"):
            _get(server, page)
        with socket.create_connection(("127.0.0.1", server.port)) as scanner:
            scanner.sendall(b"\x16\x03\x01 not http\r\n\r\n")
            assert scanner.recv(100).startswith(b"HTTP/1.1 400")
    assert capsys.readouterr() == ("", "")
    log.configure(verbose=True)
    with Server(observer.state) as server:
        _get(server, "metrics")
    assert "GET" not in capsys.readouterr().err


def test_nothing_heavy_is_imported_without_a_port() -> None:
    code = (
        "import sys; from rivermouth.observe import Observer, events, log, report, server;"
        "print([m for m in ('uvicorn', 'starlette', 'prometheus_client', 'rich', 'pyspark', 'pyarrow')"
        " if m in sys.modules])"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "[]\n"
    )
