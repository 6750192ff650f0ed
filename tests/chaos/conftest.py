"""What every scenario starts from: a stream, a pipeline, and chance that can be repeated."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rivermouth import faults
from tests.chaos.river import River
from tests.chaos.seed import SEED
from tests.chaos.stream import Stream
from tests.services.kafka import Broker


def pytest_report_header() -> str:
    return f"chaos: repeat with SEED={SEED}"


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """What a scenario leaves to chance; the same seed gives the same, whichever tests run."""
    print(f"CHAOS_SEED={SEED}")  # pytest shows it if the test fails
    return random.Random(f"{SEED} {request.node.name}")


@pytest.fixture
def stream(kafka: Broker) -> Stream:
    return Stream(kafka)


@pytest.fixture
def make_river(tmp_path: Path, spark: Any) -> Iterator[Callable[..., River]]:
    """Makes pipelines into one table, and clears away what they started."""
    made: list[River] = []

    def make(stream: Stream, **options: Any) -> River:
        made.append(River(tmp_path, stream, spark, **options))
        return made[-1]

    yield make
    for river in made:
        river.clear()


@pytest.fixture
def river(make_river: Callable[..., River], stream: Stream) -> River:
    return make_river(stream)


@pytest.fixture
def fault(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Sets a crash point for pipelines that run in this process, counted from now on."""

    def ask(what: str) -> None:
        monkeypatch.setattr(faults, "_counts", {})
        monkeypatch.setenv(faults.VARIABLE, what)

    return ask
