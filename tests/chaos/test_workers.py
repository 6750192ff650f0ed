"""What works for the pipeline dies: a Python worker, the JVM, its memory; or its input is hostile."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest

from tests.chaos.river import River
from tests.processes import descendants

pytestmark = pytest.mark.slow


def test_a_worker_killed_while_it_writes_costs_a_second_attempt(river: River):
    """Spark runs the task again; what the first attempt had written nobody refers to."""
    river.sink.update(batch_size=100_000, max_batch_size=1_000_000)
    river.stream.produce(400_000)
    with river.here() as here:
        worker = here.until(lambda: writer(river.table), "a worker in the middle of a file")
        worker.kill()
        here.until(lambda: river.log.read() == 400_000, "all that was produced")
        assert here.sink.last_error is None
    river.check()


def writer(table: Path) -> psutil.Process | None:
    """A Python worker that has one of the table's files open."""
    for process in descendants(os.getpid()):
        try:
            if any(str(table) in file.path for file in process.open_files()):
                return process
        except psutil.Error:
            continue
    return None


# None of these is an event; each has taken some decoder or other down.
HOSTILE = [
    None,
    b"",
    b"null",
    b"[]",
    b"\x00",
    b"\xff\xfe",
    b'{"n": 1e999}',
    b'{"n": 123456789012345678901234567890}',
    b'{"n": NaN}',
    b'{"n": 1, "n": 2}',
    b'{"n": 1} {"n": 2}',
    b'{"n": 1}\n{"n": 2}',
    b'{"n": "\\ud800"}',
    b'{"n": ' + b"[" * 100_000,
    b'{"n": ' * 50_000,
    b'{"' + b"k" * 500_000,
    b'{"n": null}',
    b"{}",
]


def test_hostile_records_become_dead_letters_and_their_neighbours_events(river: River):
    with river.here() as here:
        for first in range(1_000_000, 1_000_000 + len(HOSTILE), 3):
            river.stream.produce(20)
            hostile = dict(enumerate(HOSTILE[first - 1_000_000 :][:3], start=first))
            river.stream.send(hostile)
            river.stream.bad |= set(hostile)
        here.until(lambda: river.log.read() == river.stream.produced, "all that was produced")
        assert here.sink.last_error is None
    river.check()


def test_a_pipeline_whose_jvm_is_killed_ends_and_the_next_start_goes_on(river: River):
    with river.stream.flowing():
        run = river.start()
        run.until(lambda: river.log.read() > 0, "the first epoch")
        jvm = run.jvm()
        assert jvm is not None
        jvm.send_signal(signal.SIGKILL)
        code, said = run.end()
    assert code == 1, said
    assert "EngineLost: the Spark process ended" in said
    river.finish()
    river.check()


def test_a_jvm_out_of_memory_ends_and_a_start_with_more_goes_on(river: River):
    """Records that do not fit into its heap: an error and an end, no hang."""
    large = range(1_000_000, 1_000_100)
    river.stream.send({n: b'{"n": %d, "s": "%s"}' % (n, b"x" * 900_000) for n in large})
    river.stream.good |= set(large)
    conf = river.more["spark"]["conf"]
    conf.update({"spark.driver.memory": "100m", "spark.testing.reservedMemory": "1000000"})
    code, said = river.start("--once").end()
    assert code == 1, said
    assert "EngineLost: the Spark process ended" in said
    conf.update({"spark.driver.memory": "1g"})
    del conf["spark.testing.reservedMemory"]
    code, said = river.start("--once").end()
    assert code == 0, said
    river.check()
