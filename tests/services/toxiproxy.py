"""A real toxiproxy, built with Go once and kept in the user's cache: a network that can be taken away."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any

from rivermouth.spark import cache

VERSION = "2.12.0"
_MODULE = f"github.com/Shopify/toxiproxy/v2/cmd/server@v{VERSION}"
_READY_WITHIN = 30.0


class Toxiproxy:
    """A proxy server on a port of its own; `open` one proxy a service."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._port = free_port()

    def __enter__(self) -> Toxiproxy:
        command = [str(executable()), "-host", "127.0.0.1", "-port", str(self._port)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + _READY_WITHIN
        while True:
            try:
                self._ask("GET", "/version")
                return self
            except urllib.error.URLError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    self.stop()
                    raise RuntimeError("toxiproxy did not start") from None
                time.sleep(0.02)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def open(self, name: str, port: int, upstream: int) -> None:
        """Listen on `port` and pass everything on to `upstream`, both on this machine."""
        self._ask(
            "POST",
            "/proxies",
            {
                "name": name,
                "listen": f"127.0.0.1:{port}",
                "upstream": f"127.0.0.1:{upstream}",
                "enabled": True,
            },
        )

    def cut(self, name: str) -> None:
        """Close every connection and refuse new ones, until `heal`."""
        self._ask("POST", f"/proxies/{name}", {"enabled": False})

    def swallow(self, name: str) -> None:
        """Take what is sent and answer nothing, connections left open, until `heal`."""
        self._ask("POST", f"/proxies/{name}/toxics", {"type": "timeout", "attributes": {"timeout": 0}})

    def heal(self) -> None:
        """Let every proxy work again."""
        self._ask("POST", "/reset")

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> bytes:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self._port}{path}", data, method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return bytes(answer.read())


def executable() -> Path:
    """The program, built the first time; later starts need neither Go nor a network."""
    folder = cache.directory() / "toxiproxy" / VERSION
    program = folder / "server"
    with cache.locked(folder.parent / "lock"):
        if not program.is_file():
            _build(folder)
    return program


def _build(folder: Path) -> None:
    go = shutil.which("go")
    if go is None:
        raise RuntimeError(f"toxiproxy {VERSION} is built with Go, and there is no `go` here: install Go")
    cache.make(folder)
    with tempfile.TemporaryDirectory(dir=folder) as draft:
        built = subprocess.run(
            [go, "install", _MODULE], env={**os.environ, "GOBIN": draft}, capture_output=True, text=True
        )
        if built.returncode != 0:
            raise RuntimeError(f"toxiproxy {VERSION} could not be built: {built.stderr[-2000:]}")
        (Path(draft) / "server").rename(folder / "server")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as opened:
        return int(opened.getsockname()[1])
