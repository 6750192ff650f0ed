"""`rivermouth run` as a user meets it: exit codes, signals, logs, pages, and what a kill leaves behind."""

from __future__ import annotations

import json
import re
import signal
import urllib.error
import urllib.request
from pathlib import Path

import psutil
import pytest
from deltalake import DeltaTable

from tests.processes import descendants, wait_for


def pipeline(table: str = "lake/numbers", **generator):
    return {
        "pipeline": "cli",
        "sources": {"gen": {"connector": "generator", "config": {"topics": ["numbers"], **generator}}},
        "sinks": {
            "numbers": {
                "connector": "delta-lake",
                "config": {"table_uri": table, "schema": "n BIGINT NOT NULL", "flush_interval": "200ms"},
            }
        },
    }


def landed(folder: Path) -> list[int]:
    return DeltaTable(str(folder / "lake" / "numbers")).to_pyarrow_table().column("n").to_pylist()


def epochs(folder: Path) -> int:
    table = folder / "lake" / "numbers"
    return DeltaTable(str(table)).version() if DeltaTable.is_deltatable(str(table)) else 0


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_once_lands_what_is_there_and_exits_0_quietly(command, tmp_path):
    command.config("p.yaml", pipeline(count=5000))
    done = command.run("run", "p.yaml", "--once")
    assert done.returncode == 0, done.stderr
    assert sorted(landed(tmp_path)) == list(range(5000))
    assert done.stdout == ""
    assert [line.split(" ", 1)[1] for line in done.stderr.splitlines()] == [
        "INFO numbers: starts anew, generation 1, 1 partition",
        "INFO numbers: stopped; 5,000 rows and 0 dead letters in 1 epoch",
    ]
    again = command.run("run", "p.yaml", "--once", "--log-format", "json")
    assert again.returncode == 0
    lines = [json.loads(line) for line in again.stderr.splitlines()]
    assert [(line["event"], line["sink"]) for line in lines] == [
        ("SinkStarted", "numbers"),
        ("SinkStopped", "numbers"),
    ]
    assert len(landed(tmp_path)) == 5000
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lake", "p.yaml"]  # no derby.log, no warehouse


def test_a_fatal_error_is_one_clear_message_and_exit_1(command, tmp_path):
    tree = pipeline(count=10)
    tree["sinks"]["numbers"]["config"]["auto_create_table"] = False
    command.config("p.yaml", tree)
    done = command.run("run", "p.yaml", "--once")
    assert done.returncode == 1
    assert f"NotATable: there is no Delta table at {tmp_path}/lake/numbers" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 2


def test_a_bad_config_is_reported_whole_and_exit_1(command, tmp_path):
    tree = pipeline(count=-1)
    tree["sinks"]["numbers"]["config"]["batch_sise"] = 1
    command.config("p.yaml", tree)
    done = command.run("run", "p.yaml")
    assert done.returncode == 1
    assert re.search(r"p\.yaml:\d+:\d+: UnknownKey: .*batch_size", done.stderr)
    assert re.search(r"p\.yaml:\d+:\d+: InvalidValue: ", done.stderr)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_finishes_the_epoch_and_exits_0(command, tmp_path, number):
    command.config("p.yaml", pipeline(rate=2000))
    process = command.start("run", "p.yaml")
    wait_for(lambda: epochs(tmp_path) >= 3, "two epochs")
    family = descendants(process.pid)
    (jvm,) = [p for p in family if "java" in p.name()]
    jvm.send_signal(number)  # as Ctrl-C and service managers do, which signal more than one process
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "Traceback" not in err
    rows = landed(tmp_path)
    assert sorted(rows) == list(range(len(rows)))
    assert not [p for p in family if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


def in_a_long_epoch(command, tmp_path, shutdown_timeout: str):
    """Start a pipeline and wait until it is in an epoch that would take minutes."""
    tree = {**pipeline(count=500_000_000), "shutdown_timeout": shutdown_timeout}
    tree["sinks"]["numbers"]["config"].update(batch_size=500_000_000, max_batch_size=500_000_000)
    command.config("p.yaml", tree)
    process = command.start("run", "p.yaml")
    # The first epoch is a small one, to learn how large the records are.
    wait_for(lambda: epochs(tmp_path) >= 2, "an epoch")
    committed = len(DeltaTable(str(tmp_path / "lake" / "numbers")).file_uris())
    wait_for(lambda: len(list(tmp_path.glob("lake/numbers/*.parquet"))) > committed, "the epoch in flight")
    return process, descendants(process.pid)


def test_a_second_signal_stops_at_once_and_leaves_nothing_behind(command, tmp_path):
    process, family = in_a_long_epoch(command, tmp_path, "1h")
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    # Which of the two comes second is the kernel's choice.
    assert process.returncode in (128 + signal.SIGTERM, 128 + signal.SIGINT)
    wait_for(lambda: not [p for p in family if p.is_running()], "the JVM and its workers to end")
    assert epochs(tmp_path) == 2  # it was given up


def test_an_epoch_that_outlasts_the_shutdown_timeout_is_given_up(command, tmp_path):
    process, family = in_a_long_epoch(command, tmp_path, "2s")
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "Traceback" not in err
    assert epochs(tmp_path) == 2
    assert sorted(landed(tmp_path)) == list(range(len(landed(tmp_path))))
    wait_for(lambda: not [p for p in family if p.is_running()], "the JVM and its workers to end")


def test_kill_9_loses_nothing_doubles_nothing_and_leaves_no_process(command, tmp_path):
    command.config("p.yaml", pipeline(rate=3000))

    def run_and_kill(enough: int) -> None:
        process = command.start("run", "p.yaml")
        wait_for(lambda: epochs(tmp_path) >= enough, "two epochs")
        family = descendants(process.pid)
        process.kill()
        process.communicate(timeout=60)
        wait_for(lambda: not [p for p in family if p.is_running()], "the JVM and its workers to end")

    for _ in range(2):
        run_and_kill(epochs(tmp_path) + 3)
    assert command.run("run", "p.yaml", "--once").returncode == 0
    rows = landed(tmp_path)
    assert sorted(rows) == list(range(len(rows)))


def test_metrics_and_health_while_it_runs(command, tmp_path):
    tree = pipeline(rate=1000, broken=0.05)
    tree["metrics_port"] = 0
    command.config("p.yaml", tree)
    process = command.start("run", "p.yaml")
    line = wait_for(process.stderr.readline, "the address")
    address = re.search(r"http://127\.0\.0\.1:\d+/", line)[0]
    wait_for(lambda: get(address + "ready")[0] == 200 and epochs(tmp_path) >= 2, "readiness")
    assert get(address + "live")[0] == 200
    written = re.compile(r'rivermouth_records_written_total\{pipeline="cli",sink="numbers"\} [1-9]')
    wait_for(lambda: written.search(get(address + "metrics")[1]), "rows in the metrics")
    text = get(address + "metrics")[1]
    assert "# TYPE rivermouth_commit_latency_seconds histogram" in text
    health = json.loads(get(address + "health")[1])
    assert list(health["sinks"]) == ["numbers"]
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 0


def test_a_taken_metrics_port_is_told_before_anything_starts(command, tmp_path):
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        command.config("p.yaml", {**pipeline(count=10), "metrics_port": taken.getsockname()[1]})
        done = command.run("run", "p.yaml", "--once")
    assert done.returncode == 1
    assert done.stderr.startswith("PortUnavailable: ")
    assert not (tmp_path / "lake").exists()


def test_the_demo_ends_by_itself_with_a_summary_and_goes_on_the_next_time(command, tmp_path):
    totals = []
    for _ in range(2):
        done = command.run("demo", "--for", "8")
        assert done.returncode == 0, done.stderr
        assert "dead letters by reason: " in done.stdout
        assert "what to try next" in done.stdout
        totals.append(
            sum(DeltaTable(str(tmp_path / "demo-lake" / t)).count() for t in ("orders", "payments", "clicks"))
        )
    assert totals[1] > totals[0] > 0
    orders = (
        DeltaTable(str(tmp_path / "demo-lake" / "orders")).to_pyarrow_table().column("order_id").to_pylist()
    )
    assert len(orders) == len(set(orders))
