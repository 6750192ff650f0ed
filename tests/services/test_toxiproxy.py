"""The proxy passes on, cuts, swallows and heals, as the tests of faults rely on."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from tests.services.toxiproxy import Toxiproxy, free_port

pytestmark = pytest.mark.slow  # it is built the first time


@pytest.fixture
def echo() -> Iterator[int]:
    """A service that says back what it is told; its port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                while data := connection.recv(100):
                    connection.sendall(data)

    threading.Thread(target=serve, daemon=True).start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def say(port: int, timeout: float = 10.0) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as connection:
        connection.sendall(b"hello")
        return connection.recv(100)


def test_a_proxy_passes_on_until_it_is_cut_and_again_when_it_is_healed(echo: int) -> None:
    port = free_port()
    with Toxiproxy() as proxy:
        proxy.open("echo", port, echo)
        assert say(port) == b"hello"
        proxy.cut("echo")
        with pytest.raises(ConnectionRefusedError):
            say(port)
        proxy.heal()
        assert say(port) == b"hello"
        proxy.swallow("echo")
        with pytest.raises(TimeoutError):
            say(port, timeout=0.3)
        proxy.heal()
        assert say(port) == b"hello"
