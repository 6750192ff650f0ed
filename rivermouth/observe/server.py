"""The pages of a running pipeline: metrics for Prometheus, health for whoever watches over it."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

from rivermouth.errors import RivermouthError
from rivermouth.observe.health import health, ready

if TYPE_CHECKING:
    from types import TracebackType

    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

    from rivermouth.observe.state import State

PAGES = {
    "/metrics": "Prometheus metrics",
    "/health": "every sink in figures, JSON",
    "/ready": "200 when every sink runs, 503 when one is down or stuck",
    "/live": "200 while the process runs",
}


class PortUnavailable(RivermouthError):
    """The metrics port cannot be listened on."""

    code = "PortUnavailable"
    hint = "set metrics_port to a free port, or to 0 to have one chosen"


class Server:
    """Serves a state's pages from a thread of its own, from `start` to `stop`."""

    def __init__(self, state: State, host: str = "127.0.0.1", port: int = 0) -> None:
        self.state = state
        self.host = host
        self.port = port  # after `start`: the port that is listened on, also when 0 was asked for
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The address of the index page."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}/"

    def start(self) -> None:
        """Listen, and return; raises `PortUnavailable` at once if that cannot be had."""
        import uvicorn

        listener = _listen(self.host, self.port)
        self.port = listener.getsockname()[1]
        config = uvicorn.Config(
            _app(self.state),
            log_config=None,
            access_log=False,
            lifespan="off",
            loop="asyncio",
            http="h11",
            ws="none",
            timeout_graceful_shutdown=2,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [listener]}, name="rivermouth-http", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Finish the answers under way and close the port. May be called twice."""
        if self._server is None or self._thread is None:
            return
        self._server.should_exit = True
        self._thread.join(timeout=5)
        self._server = self._thread = None

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(128)  # now, not when the thread gets to it: a taken port may only show here
        except OSError:
            listener.close()
            raise
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise PortUnavailable(f"cannot listen on {host}:{port}: {reason}") from error
    return listener


def _app(state: State) -> Starlette:
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse, PlainTextResponse, Response
    from starlette.routing import Route

    from rivermouth.observe.metrics import Metrics

    metrics = Metrics(state)

    async def index(_request: Request) -> Response:
        lines = "".join(f"{path:<10}{what}\n" for path, what in PAGES.items())
        return PlainTextResponse(f"rivermouth, pipeline {state.pipeline}\n\n{lines}")

    async def show_metrics(request: Request) -> Response:
        text, content_type = metrics.exposition(request.headers.get("accept", ""))
        return Response(text, headers={"content-type": content_type})

    async def show_health(_request: Request) -> Response:
        return JSONResponse(health(state))

    async def show_ready(_request: Request) -> Response:
        is_ready, body = ready(state)
        return JSONResponse(body, status_code=200 if is_ready else 503)

    async def show_live(_request: Request) -> Response:
        return JSONResponse({"live": True, "pipeline": state.pipeline})

    return Starlette(
        routes=[
            Route("/", index),
            Route("/metrics", show_metrics),
            Route("/health", show_health),
            Route("/ready", show_ready),
            Route("/live", show_live),
        ]
    )
