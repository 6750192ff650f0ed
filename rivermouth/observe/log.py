"""Log lines on stderr: text for people or JSON for machines, and quiet when all is well."""

from __future__ import annotations

import dataclasses
import json
import logging
import sys
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Literal

from rivermouth.observe.events import Event
from rivermouth.observe.figures import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Format = Literal["text", "json"]

# Engines that tell much and mean little; their errors reach us as exceptions.
NOISY = ("py4j", "pyspark", "uvicorn", "asyncio")


def configure(format: Format = "text", verbose: bool = False) -> None:
    """Send log lines to stderr. `verbose` adds every epoch, the engines' own lines and stack traces."""
    root = logging.getLogger()
    for old in [handler for handler in root.handlers if isinstance(handler, StderrHandler)]:
        root.removeHandler(old)
    handler = StderrHandler()
    handler.setFormatter(JsonFormatter(verbose) if format == "json" else TextFormatter(verbose))
    root.addHandler(handler)
    logging.getLogger("rivermouth").setLevel(logging.DEBUG if verbose else logging.INFO)
    for name in NOISY:
        logging.getLogger(name).setLevel(logging.INFO if verbose else logging.CRITICAL)


@contextmanager
def printing_through(write: Callable[[str], None]) -> Iterator[None]:
    """Hand log lines to `write` for a while, so that they do not break a live display."""
    handlers = [h for h in logging.getLogger().handlers if isinstance(h, StderrHandler)]
    for handler in handlers:
        handler.write = write
    try:
        yield
    finally:
        for handler in handlers:
            handler.write = None


class StderrHandler(logging.Handler):
    """Writes to the stderr of the moment, or to a display that took it over."""

    write: Callable[[str], None] | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        try:
            line = self.format(record)
            if self.write is not None:
                self.write(line)
            else:
                sys.stderr.write(line + "\n")
                sys.stderr.flush()
        except Exception:  # noqa: BLE001 (what logging does with its own errors)
            self.handleError(record)


class TextFormatter(logging.Formatter):
    """`2026-01-01T00:00:00Z INFO orders: ...`; further lines are indented, so that none can be forged."""

    def __init__(self, verbose: bool = False) -> None:
        super().__init__()
        self.verbose = verbose

    def format(self, record: logging.LogRecord) -> str:
        """One record as text."""
        event = _event(record)
        text = record.getMessage()
        if record.exc_info and self.verbose:
            text += "\n" + self.formatException(record.exc_info)
        text = printable(text).rstrip("\n").replace("\n", "\n  ")
        who = event.sink if event else record.name
        return f"{_time(record):%Y-%m-%dT%H:%M:%SZ} {record.levelname} {who}: {text}"


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, event, pipeline, sink, message and the event's own fields."""

    def __init__(self, verbose: bool = False) -> None:
        super().__init__()
        self.verbose = verbose

    def format(self, record: logging.LogRecord) -> str:
        """One record as JSON."""
        out: dict[str, Any] = {
            "time": _time(record).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
        }
        if event := _event(record):
            out["event"] = type(event).__name__
            out["pipeline"] = getattr(record, "pipeline", None)
            out["sink"] = event.sink
            # An error's own message is the better one: its line only adds what other fields say.
            out["message"] = record.getMessage()
            out.update({f.name: getattr(event, f.name) for f in dataclasses.fields(event)})
        else:
            out["logger"] = record.name
            out["message"] = record.getMessage()
        if record.exc_info and self.verbose:
            out["exception"] = self.formatException(record.exc_info)
        return json.dumps(out, ensure_ascii=True, default=_plain)


def _event(record: logging.LogRecord) -> Event | None:
    event = getattr(record, "event", None)
    return event if isinstance(event, Event) else None


def _time(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, timezone.utc)


def _plain(value: Any) -> Any:
    return dict(value) if hasattr(value, "keys") else str(value)
