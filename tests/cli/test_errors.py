"""What a user sees when a command fails: one line and exit 1; the trace only when asked for."""

from __future__ import annotations

import os
import signal
import socket

import pytest
from typer.testing import CliRunner

from rivermouth.cli import app
from tests.processes import wait_for

PIPELINE = {
    "sources": {"gen": {"connector": "generator", "config": {"count": 1}}},
    "sinks": {"s": {"connector": "delta-lake", "topics": ["orders"], "config": {"table_uri": "t"}}},
}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["setup"], "SetupError: cannot create the cache directory {file}"),
        (["demo", "--lake", "{file}/lake"], "NotADirectoryError: {file}/lake: Not a directory"),
        (["init", "{file}/folder"], "NotADirectoryError: {file}/folder: Not a directory"),
    ],
)
def test_an_error_is_one_line_and_exit_1(command, tmp_path, arguments, said):
    file = tmp_path / "file"
    file.touch()
    done = command.run(*(a.format(file=file) for a in arguments), RIVERMOUTH_CACHE_DIR=str(file))
    assert done.returncode == 1
    assert done.stderr.startswith(said.format(file=file))
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("verbose", [False, True])
def test_the_trace_is_shown_only_when_asked_for(command, verbose):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        command.config("p.yaml", {**PIPELINE, "metrics_port": taken.getsockname()[1]})
        done = command.run("run", "p.yaml", *(["--verbose"] if verbose else []))
    assert done.returncode == 1
    assert "PortUnavailable: " in done.stderr.splitlines()[-1]
    assert ("Traceback" in done.stderr) == verbose


def test_a_mistake_in_the_config_needs_no_trace(command):
    command.config("p.yaml", {**PIPELINE, "metrics_prot": 1})
    done = command.run("run", "p.yaml", "--verbose")
    assert done.returncode == 1
    assert done.stderr.startswith("p.yaml:")
    assert len(done.stderr.splitlines()) == 1


def test_ctrl_c_before_the_pipeline_runs_is_quiet(command, tmp_path):
    fifo = tmp_path / "p.yaml"
    os.mkfifo(fifo)
    process = command.start("run", "p.yaml")

    def open_for_writing() -> int | None:
        try:
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody reads it yet
            return None

    writer = wait_for(open_for_writing, "the command to read its config")
    try:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        os.close(writer)
    assert (process.returncode, out, err) == (130, "", "")


def test_a_reader_that_goes_away_is_no_error(monkeypatch):
    def gone(*_arguments: object, **_keys: object) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr("typer.echo", gone)
    result = CliRunner().invoke(app, ["schema"])
    assert (result.exit_code, result.output) == (1, "")
