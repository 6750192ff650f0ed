"""The pipeline under test: one topic or more, one table, started as often as a test likes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import yaml

from rivermouth import sources
from rivermouth.config.load import load
from rivermouth.observe.observer import Observer
from rivermouth.observe.state import LastError
from rivermouth.pipeline.run import run
from tests.chaos import oracle
from tests.chaos.log import Log
from tests.chaos.run import Run
from tests.chaos.stream import Stream
from tests.processes import wait_for

_SPARK = {
    "spark.driver.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


class River:
    """A pipeline with one sink; it runs in processes of its own (`start`) or in this one (`here`).

    A start takes seconds and a process is needed where one is killed or paused; the rest is done here.
    """

    def __init__(self, folder: Path, stream: Stream, spark: Any, *, pipeline: str = "chaos") -> None:
        self.folder = folder
        self.stream = stream
        self.spark = spark
        self.pipeline = pipeline
        self.table = folder / "lake" / "numbers"
        self.log = Log(self.table)
        self.dead_letter_log = Log(Path(f"{self.table}_dead_letters"))
        self.source: dict[str, Any] = {
            "bootstrap_servers": stream.broker.bootstrap_servers,
            "topics": [stream.topic],
        }
        self.sink: dict[str, Any] = {
            "table_uri": str(self.table),
            "schema": "n BIGINT NOT NULL",
            "flush_interval": "100ms",
            "batch_size": 100,
            "max_batch_size": 200,
        }
        self.more: dict[str, Any] = {"spark": {"conf": dict(_SPARK)}}
        self._runs: list[Run] = []

    def tree(self) -> dict[str, Any]:
        """The config file, as it is now."""
        return {
            "pipeline": self.pipeline,
            "sources": {"bus": {"connector": "kafka", "config": self.source}},
            "sinks": {"numbers": {"connector": "delta-lake", "config": self.sink}},
            **self.more,
        }

    def start(self, *options: str, fault: str = "") -> Run:
        """Start it as a process."""
        output = self.folder / f"{self.pipeline}-{len(self._runs)}.log"
        self._runs.append(Run(self.tree(), output, *options, fault=fault))
        return self._runs[-1]

    def finish(self) -> None:
        """Land all that is there and return; in this process."""
        (sink,) = self._run(once=True).state.sinks()
        assert sink.phase == "stopped", sink.last_error

    @contextmanager
    def here(self) -> Iterator[Here]:
        """Run it in a thread of this process for as long as the block runs."""
        running = Here(self._run)
        try:
            yield running
        finally:
            running.stop()
        running.well()

    def check(self) -> None:
        """Ask the oracle."""
        oracle.check(self.table, self.stream)

    def clear(self) -> None:
        for started in self._runs:
            started.clear()

    def _run(self, **options: Any) -> Observer:
        file = self.folder / f"{self.pipeline}.yaml"
        file.write_text(yaml.safe_dump(self.tree(), sort_keys=False))
        return run(load(file, sources.models()), spark=self.spark, **options)


class Here:
    """A pipeline that runs in this process."""

    def __init__(self, body: Callable[..., Observer]) -> None:
        self._stop = threading.Event()
        self._observers: list[Observer] = []
        self._expected = False
        self._thread = threading.Thread(target=self._follow, args=(body,), name="river")
        self._thread.start()
        wait_for(lambda: self._observers or not self._thread.is_alive(), "the pipeline")

    def _follow(self, body: Callable[..., Observer]) -> None:
        def watch(observer: Observer, _address: str) -> Any:
            self._observers.append(observer)
            return nullcontext()

        body(stop=self._stop, watch=watch)

    @property
    def sink(self) -> Any:
        """What is observed of its sink."""
        (status,) = self._observers[0].state.sinks()
        return status

    def until(self, condition: Callable[[], Any], what: str) -> Any:
        """Wait for something observed while it runs; if it fails instead, say why."""

        def look() -> Any:
            if found := condition():
                return found
            self.well()
            return None

        return wait_for(look, what)

    def failure(self) -> LastError:
        """Wait until its sink has failed for good; the error."""
        self._expected = True
        wait_for(lambda: not self._thread.is_alive(), "the sink's failure")
        assert self.sink.phase != "running" and self.sink.last_error is not None
        return self.sink.last_error

    def well(self) -> None:
        """Raise if it has failed and no test expected it."""
        error = self.sink.last_error
        failed = self.sink.phase == "failed" or (error is not None and error.retry_at is None)
        assert self._expected or not failed, error

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
