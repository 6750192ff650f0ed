"""Where every part of a pipeline tells what happened."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from rivermouth.observe.events import Event
from rivermouth.observe.state import State

if TYPE_CHECKING:
    from datetime import timedelta

LOGGER = logging.getLogger("rivermouth.events")

Handler = Callable[[Event], None]


class Observer:
    """Takes events from any thread: updates the state, logs the line, calls the handlers."""

    def __init__(
        self,
        pipeline: str,
        sinks: Mapping[str, timedelta],
        handlers: Iterable[Handler] = (),
        *,
        reasons: Iterable[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`sinks` gives each sink's flush interval; `reasons` are the dead-letter reasons to count from 0."""
        self.pipeline = pipeline
        self.state = State(pipeline, sinks, reasons=reasons, clock=clock)
        self.handlers = tuple(handlers)

    def emit(self, event: Event) -> None:
        """Tell that something happened."""
        self.state.apply(event)
        # Outside the state's lock: a log line may wait for the display, and the display for the state.
        if event.level != logging.NOTSET and LOGGER.isEnabledFor(event.level):
            LOGGER.log(event.level, "%s", event.line(), extra={"event": event, "pipeline": self.pipeline})
        for handler in self.handlers:
            try:
                handler(event)
            except Exception:  # a sink must not fail because someone watches it
                LOGGER.warning("a handler of %s failed", type(event).__name__, exc_info=True)
