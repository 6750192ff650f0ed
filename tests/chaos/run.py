"""One start of the command, as a process on a machine of its own: nothing local is left when it is over."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import yaml

from rivermouth import faults
from rivermouth.spark import cache
from tests.processes import PATIENCE, wait_for


class Run:
    """A `rivermouth run` with a working directory, a home and a temporary directory that nobody else has.

    Only the jars are shared with other runs, so that a start needs no network.
    """

    def __init__(self, tree: dict[str, Any], output: Path, *options: str, fault: str = "") -> None:
        # A short name: sockets of the workers live in it.
        self.machine = Path(tempfile.mkdtemp(prefix="machine-"))
        (self.machine / "pipeline.yaml").write_text(yaml.safe_dump(tree, sort_keys=False))
        self.output = output
        environment = {
            **os.environ,
            "HOME": str(self.machine),
            "TMPDIR": str(self.machine),
            "RIVERMOUTH_CACHE_DIR": str(cache.directory()),
            faults.VARIABLE: fault,
        }
        with output.open("wb") as file:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    "from rivermouth.cli import app; app()",
                    "run",
                    "pipeline.yaml",
                    *options,
                ],
                cwd=self.machine,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )

    @property
    def said(self) -> str:
        """All it has said so far."""
        return self.output.read_text(errors="replace")

    def belongings(self) -> list[psutil.Process]:
        """Every process of this run: the command itself, the JVM, the Python workers."""
        return [process for process in psutil.process_iter() if _temporary(process) == str(self.machine)]

    def jvm(self) -> psutil.Process | None:
        """Its JVM, once it is there."""
        return next((p for p in self.belongings() if p.name() == "java"), None)

    def until(self, condition: Callable[[], Any], what: str) -> Any:
        """Wait for something observed while it runs; if it ends instead, fail with what it said."""

        def look() -> Any:
            if found := condition():
                return found
            code = self.process.poll()
            assert code is None, f"it ended with {code} instead of {what}: {self.said}"
            return None

        try:
            return wait_for(look, what)
        except AssertionError as error:
            raise AssertionError(f"{error}; it said: {self.said}") from None

    def until_stopped(self) -> None:
        """Wait until a crash point has stopped it."""
        myself = psutil.Process(self.process.pid)
        self.until(lambda: myself.status() == psutil.STATUS_STOPPED, "a stop at its crash point")

    def wake(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """kill -9, as at any moment."""
        self.process.kill()
        self.end()

    def terminate(self) -> None:
        """Ask it to stop after the epoch in flight, and see that it does so in peace."""
        self.process.terminate()
        code, said = self.end()
        assert code == 0, said

    def end(self) -> tuple[int, str]:
        """Wait for its end, its JVM's too, and remove every local file; its exit code, and what it said."""
        try:
            code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it did not end; it said: {self.said}") from None
        wait_for(lambda: not self.belongings(), "the end of its JVM and workers")
        shutil.rmtree(self.machine)
        return code, self.said

    def clear(self) -> None:
        """After a test, passed or failed: leave nothing."""
        for process in [*self.belongings()]:
            process.kill()
        self.process.wait()
        shutil.rmtree(self.machine, ignore_errors=True)


def _temporary(process: psutil.Process) -> str | None:
    try:
        return process.environ().get("TMPDIR")
    except (psutil.Error, OSError):
        return None
