"""However a session ends, nothing of it stays: no JVM, no worker, no file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

_BUSY = """
    import sys, threading, time
    from rivermouth.spark import session

    def sleep(batches):
        import time
        for batch in batches:
            time.sleep(600)
            yield batch

    spark = session.start("victim", "local[2]", {"spark.driver.memory": "1g"})
    job = spark.range(0, 2, 1, 2).mapInArrow(sleep, "id long")
    threading.Thread(target=job.collect, daemon=True).start()
    print("busy", flush=True)
    time.sleep(600)
"""


def _run(script: str, folder: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "TMPDIR": str(folder / "tmp")}
    (folder / "tmp").mkdir()
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _workers_at_work(parent: psutil.Process) -> list[psutil.Process]:
    """All processes below a driver, once its JVM, daemon and two workers are there."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        below = parent.children(recursive=True)
        if len(below) >= 4:  # JVM, daemon, two workers
            return below
        time.sleep(0.1)
    raise AssertionError(f"no workers came: {below}")


@pytest.mark.slow
@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_runs_on_when_the_driver_is_killed(tmp_path: Path, blow: signal.Signals) -> None:
    driver = _run(_BUSY, tmp_path)
    assert driver.stdout is not None
    assert driver.stdout.readline() == "busy\n"
    below = _workers_at_work(psutil.Process(driver.pid))
    driver.send_signal(blow)
    driver.wait(30)
    _, alive = psutil.wait_procs(below, timeout=30)
    assert alive == []


@pytest.mark.slow
def test_workers_go_when_the_jvm_is_killed(tmp_path: Path) -> None:
    driver = _run(_BUSY, tmp_path)
    assert driver.stdout is not None
    assert driver.stdout.readline() == "busy\n"
    below = _workers_at_work(psutil.Process(driver.pid))
    jvm = next(process for process in below if process.ppid() == driver.pid)
    jvm.kill()
    driver_children = [process for process in below if process.pid != jvm.pid]
    _, alive = psutil.wait_procs(driver_children, timeout=30)
    driver.kill()
    driver.wait()
    assert alive == []


@pytest.mark.slow
def test_the_next_start_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    driver = _run(_BUSY, tmp_path)
    assert driver.stdout is not None
    assert driver.stdout.readline() == "busy\n"
    left = list((tmp_path / "tmp").glob("rivermouth-session-*"))
    below = psutil.Process(driver.pid).children(recursive=True)
    driver.kill()
    driver.wait()
    psutil.wait_procs(below, timeout=30)
    assert len(left) == 1 and left[0].exists()
    sweep = "from rivermouth.spark.scratch import Scratch; Scratch().remove()"
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    subprocess.run([sys.executable, "-c", sweep], env=environment, check=True)
    assert list((tmp_path / "tmp").iterdir()) == []


_ORDERLY = """
    import signal, psutil
    from rivermouth.spark import session

    def fail(batches):
        raise ValueError("a task that fails says nothing on the terminal")

    for turn in range(2):
        spark = session.start(f"turn {turn}", "local[2]", {"spark.driver.memory": "1g"})
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert spark.range(3).count() == 3
        spark.sql("CREATE TABLE t (id INT) USING parquet")
        try:
            spark.range(2).mapInArrow(fail, "id long").collect()
        except Exception as error:
            assert "says nothing" in str(error)
        else:
            raise AssertionError("the task did not fail")
        below = psutil.Process().children(recursive=True)
        assert len(below) >= 2
        session.stop(spark)
        gone, alive = psutil.wait_procs(below, timeout=10)
        assert not alive, alive
"""


@pytest.mark.slow
def test_two_sessions_in_a_row_are_silent_and_leave_no_file(tmp_path: Path) -> None:
    driver = _run(_ORDERLY, tmp_path)
    output, _ = driver.communicate(timeout=150)
    assert (driver.returncode, output) == (0, "")
    assert [path.name for path in tmp_path.iterdir()] == ["tmp"]
    assert list((tmp_path / "tmp").iterdir()) == []
