"""What all tests share: one Spark session and one Kafka broker a process, started when first asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from rivermouth.observe.observer import Observer
from rivermouth.spark import session
from tests.lake import Lake
from tests.services.kafka import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A run in CI is the same every time; at home every run looks somewhere else.
settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("home", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci" if os.environ.get("CI") == "true" else "home")

_ROOT = Path(__file__).parent.parent

# A function of a test module travels to the workers by name, so they must find the module.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))


def pytest_configure(config: pytest.Config) -> None:
    """Leave slow tests out, unless in CI or asked for by an expression of one's own."""
    if os.environ.get("CI") != "true" and not config.option.markexpr:
        config.option.markexpr = "not slow"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The Spark session of this test process, as the product starts it but smaller."""
    conf = {
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    started = session.start("rivermouth-tests", "local[2]", conf)
    yield started
    session.stop(started)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """The Kafka broker of this test process; make topics with `kafka.create_topic()`."""
    with Broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture
def lake(tmp_path: Path, spark: SparkSession) -> Lake:
    """A folder of tables, with pipelines to fill it and DuckDB to look at it."""
    folder = tmp_path / "lake"
    folder.mkdir()
    return Lake(folder, spark)


@pytest.fixture
def statuses() -> Callable[[Observer], dict[str, Any]]:
    """What was observed of each sink, by its name."""
    return lambda observer: {status.name: status for status in observer.state.sinks()}
