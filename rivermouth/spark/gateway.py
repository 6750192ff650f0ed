"""Start the JVM of a session, and end it for sure."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING

from rivermouth.errors import SetupError

if TYPE_CHECKING:
    from py4j.clientserver import ClientServer

_START_TIMEOUT = 120.0
_STOP_TIMEOUT = 15.0
# Ctrl-C and a service manager signal the whole group, but the epoch in flight must still be finished: the JVM
# starts with both signals ignored, and keeps them so. By a shell, because code of ours that runs between fork
# and exec (`preexec_fn`) can deadlock when other threads run.
_DEAF = ("/bin/sh", "-c", 'trap "" INT TERM; exec "$@"', "sh")

# Set by other tools for other Sparks; any of them would make ours start something else.
_FOREIGN = (
    "SPARK_REMOTE",
    "SPARK_CONNECT_MODE",
    "PYSPARK_SUBMIT_ARGS",
    "PYSPARK_DRIVER_PYTHON",
    "SPARK_HOME",
)


class Jvm:
    """A running JVM with its py4j gateway; its stdin is a pipe, so it ends when this process does."""

    def __init__(self, process: subprocess.Popen[bytes], gateway: ClientServer) -> None:
        """Take charge of a process that was started with `launch`."""
        self.process = process
        self.gateway = gateway

    def end(self) -> None:
        """Close the pipe that keeps it alive, wait, and kill it if it does not go."""
        with contextlib.suppress(Exception):
            self.gateway.shutdown()
        if self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()
        try:
            self.process.wait(_STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def launch(command: list[str], environment: Mapping[str, str], folder: Path, verbose: bool) -> Jvm:
    """Start a JVM and connect to it; `folder` takes the files both sides need, and its output."""
    meeting_point = folder / "gateway"
    output = folder / "jvm.log"
    env = {name: value for name, value in {**os.environ, **environment}.items() if name not in _FOREIGN}
    env["SPARK_CONNECT_MODE"] = "0"
    env["_PYSPARK_DRIVER_CONN_INFO_PATH"] = str(meeting_point)
    with contextlib.ExitStack() as stack:
        # Unless asked for, what the JVM prints is kept for an error message and shown to nobody.
        target: IO[bytes] | None = None if verbose else stack.enter_context(output.open("ab"))
        try:
            process = subprocess.Popen(
                [*(_DEAF if os.name == "posix" else ()), *command],
                stdin=subprocess.PIPE,
                stdout=target,
                stderr=target,
                env=env,
            )
        except OSError as error:
            raise SetupError(f"cannot start {command[0]}: {error.strerror or error}") from error
    try:
        port, secret = _meet(process, meeting_point, output)
        return Jvm(process, _connect(port, secret))
    except BaseException:
        process.kill()
        process.wait()
        raise


def _meet(process: subprocess.Popen[bytes], meeting_point: Path, output: Path) -> tuple[int, str]:
    """Wait for the JVM to write the port and secret of its gateway (renamed into place, so whole)."""
    deadline = time.monotonic() + _START_TIMEOUT
    while not meeting_point.is_file():
        code = process.poll()
        if code is not None:
            raise SetupError(f"the JVM ended with code {code} before Spark was up: {tail(output)}")
        if time.monotonic() > deadline:
            raise SetupError(f"the JVM did not come up within {_START_TIMEOUT:.0f} s: {tail(output)}")
        time.sleep(0.01)
    data = meeting_point.read_bytes()
    meeting_point.unlink()
    length = int.from_bytes(data[4:8], "big")
    return int.from_bytes(data[:4], "big"), data[8 : 8 + length].decode()


def _connect(port: int, secret: str) -> ClientServer:
    from pyspark.java_gateway import launch_gateway

    # With these two set, pyspark connects to a JVM that is there already.
    with environment_of({"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}):
        return launch_gateway()


@contextlib.contextmanager
def environment_of(values: Mapping[str, str]) -> Iterator[None]:
    """Environment variables as pyspark is to see them, put back afterwards."""
    before = {name: os.environ.get(name) for name in (*values, *_FOREIGN)}
    for name in _FOREIGN:
        os.environ.pop(name, None)
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def tail(output: Path, lines: int = 12) -> str:
    """The last lines the JVM printed, without those that say nothing."""
    try:
        text = output.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "it printed nothing that was kept; see above"
    telling = [line.strip() for line in text.splitlines() if line.strip() and "incubator modules" not in line]
    return "; ".join(telling[-lines:]) or "it printed nothing"
