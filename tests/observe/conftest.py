from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from rivermouth.observe import Observer
from rivermouth.observe.events import EpochCommitted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Clock:
    """A clock that goes when told to, so that no test waits and none depends on the machine's speed."""

    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time

    def go(self, seconds: float) -> None:
        self.time += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def observer(clock: Clock) -> Observer:
    """A pipeline of two sinks, on a clock that goes when told to."""
    return Observer(
        "shop",
        {"orders": timedelta(seconds=5), "clicks": timedelta(seconds=60)},
        reasons=["InvalidJson", "WrongType"],
        clock=clock,
    )


@pytest.fixture
def committed() -> Callable[..., EpochCommitted]:
    """Makes an `EpochCommitted` of 100 records, with what is given changed."""

    def make(sink: str = "orders", **changes: Any) -> EpochCommitted:
        fields: dict[str, Any] = {
            "epoch": 1,
            "generation": 3,
            "version": 7,
            "read": 100,
            "written": 90,
            "dead": {"InvalidJson": 4, "WrongType": 2},
            "dropped": {"WrongType": 1},
            "filtered": 3,
            "files": 2,
            "bytes": 5000,
            "write_seconds": 0.3,
            "commit_seconds": 0.02,
            "epoch_seconds": 0.4,
            "retries": 0,
        }
        return EpochCommitted(sink, **{**fields, **changes})

    return make


@pytest.fixture(autouse=True)
def _restore_logging() -> Iterator[None]:
    """Logging is global: leave it as it was found."""
    root = logging.getLogger()
    handlers, names = list(root.handlers), ("rivermouth", "py4j", "pyspark", "uvicorn", "asyncio")
    levels = {name: logging.getLogger(name).level for name in names}
    yield
    root.handlers[:] = handlers
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
