"""The JVM dies under a running pipeline: it says so and ends, whatever it was doing."""

from __future__ import annotations

import signal

import pytest
from py4j.protocol import Py4JNetworkError

from rivermouth.pipeline.loop import _unexpected
from tests.processes import descendants, wait_for


@pytest.fixture
def running(command):
    """A pipeline with an epoch in its table, and its JVM."""
    command.config(
        "p.yaml",
        {
            "shutdown_timeout": "1s",
            "sources": {"gen": {"connector": "generator", "config": {"topics": ["numbers"], "rate": 100}}},
            "sinks": {
                "numbers": {
                    "connector": "delta-lake",
                    "config": {"table_uri": "numbers", "schema": "n BIGINT", "flush_interval": "200ms"},
                }
            },
        },
    )
    process = command.start("run", "p.yaml")
    log = command.folder / "numbers" / "_delta_log"
    wait_for(lambda: (log / f"{2:020d}.json").exists(), "the first epoch")
    (jvm,) = [child for child in descendants(process.pid) if "java" in child.name()]
    return process, jvm


def test_a_pipeline_whose_jvm_is_killed_ends_with_one_clear_message(running):
    process, jvm = running
    jvm.send_signal(signal.SIGKILL)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "ERROR numbers: EngineLost: the Spark process ended" in said


@pytest.mark.slow
def test_a_stop_ends_also_when_the_jvm_hangs(running):
    process, jvm = running
    jvm.send_signal(signal.SIGSTOP)
    try:
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    finally:
        jvm.send_signal(signal.SIGCONT)
    assert process.returncode == 1
    assert "did not end in time" in said
    wait_for(lambda: not jvm.is_running(), "the end of the JVM")


@pytest.mark.parametrize("error", [ConnectionRefusedError(111, "refused"), Py4JNetworkError("no answer")])
def test_a_lost_connection_to_the_jvm_is_not_retried(error):
    found = _unexpected(error)
    assert (found.code, found.retryable) == ("EngineLost", False)


def test_what_was_not_foreseen_is_retried_and_told_with_its_type():
    found = _unexpected(ZeroDivisionError("division by zero"))
    assert (found.retryable, str(found)) == (True, "EngineFailed: ZeroDivisionError: division by zero")
