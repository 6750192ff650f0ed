"""Runs a pipeline: starts Spark, gives each sink a thread, watches, and stops without losing anything."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from rivermouth import sources
from rivermouth.config.model import PipelineConfig, SinkConfig
from rivermouth.errors import ConfigError
from rivermouth.formats.base import REASONS
from rivermouth.observe.events import SourceWarning
from rivermouth.observe.observer import Observer
from rivermouth.observe.server import Server
from rivermouth.pipeline.loop import Loop
from rivermouth.pipeline.ownership import Identity
from rivermouth.pipeline.sink import Sink
from rivermouth.sources.base import Scope, Source
from rivermouth.spark import session
from rivermouth.spark.engine import Engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOGGER = logging.getLogger("rivermouth")

Watch = Callable[[Observer, str], AbstractContextManager[Any]]
"""Makes what shows the pipeline while it runs, from its observer and the address of its pages."""

# Of shutdown_timeout, this is left for Spark itself to end.
_STOP_SECONDS = 7.0
_GIVE_UP_SECONDS = 2.0
# And if all of it hangs, such as on a JVM that is stopped and answers nothing, the process ends itself.
_LAST_RESORT_SECONDS = 15.0


def choose(config: PipelineConfig, only: Sequence[str]) -> dict[str, SinkConfig]:
    """The sinks to run: all of them, or those named."""
    unknown = [name for name in only if name not in config.sinks]
    if unknown:
        raise ConfigError(
            f"there is no sink {', '.join(map(repr, unknown))} in pipeline {config.pipeline!r}",
            hint=f"it has {', '.join(config.sinks)}",
        )
    return {name: sink for name, sink in config.sinks.items() if not only or name in only}


def run(
    config: PipelineConfig,
    *,
    once: bool = False,
    only: Sequence[str] = (),
    seconds: float | None = None,
    verbose: bool = False,
    watch: Watch = lambda observer, address: nullcontext(),
    progress: Callable[[str], None] = lambda message: None,
    spark: SparkSession | None = None,
    stop: threading.Event | None = None,
) -> Observer:
    """Run a pipeline until it is stopped, has drained its sources (`once`), or every sink has failed.

    `seconds` stops it after that time, and so does setting `stop`; a `spark` session given is used and left
    running.
    Returns what was observed; a sink that failed has the phase `failed`.
    """
    chosen = choose(config, only)
    observer = Observer(
        config.pipeline, {name: s.config.flush_interval for name, s in chosen.items()}, reasons=REASONS
    )
    stop = stop or threading.Event()
    port = config.metrics_port
    server = Server(observer.state, config.metrics_host, port) if port is not None else None
    with signals(stop, config.shutdown_timeout.total_seconds()), server or nullcontext():
        if server:
            LOGGER.info("metrics and health at %s", server.url)
        with (
            open_session(config, spark, verbose, progress) as running,
            watch(observer, server.url if server else ""),
        ):
            _supervise(config, chosen, running, observer, stop, once, seconds)
    return observer


@contextmanager
def open_session(
    config: PipelineConfig, given: SparkSession | None, verbose: bool, progress: Callable[[str], None]
) -> Iterator[SparkSession]:
    """The session to work in: the one given, or one that is started now and stopped afterwards."""
    if given is not None:
        yield given
        return
    progress("starting Spark")
    name = f"rivermouth {config.pipeline}"
    spark = session.start(name, config.spark.master, config.spark.conf, verbose, progress)
    try:
        yield spark
    finally:
        session.stop(spark)


def _supervise(
    config: PipelineConfig,
    chosen: dict[str, SinkConfig],
    spark: SparkSession,
    observer: Observer,
    stop: threading.Event,
    once: bool,
    seconds: float | None,
) -> None:
    threads = [
        _start(_loop(config, name, spark, observer, stop, once), spark, config.pipeline) for name in chosen
    ]
    end = time.monotonic() + seconds if seconds is not None else float("inf")
    deadline = float("inf")
    while any(thread.is_alive() for thread in threads):
        now = time.monotonic()
        if now >= end:
            stop.set()
        if stop.is_set() and deadline == float("inf"):
            patience = config.shutdown_timeout.total_seconds()
            deadline = now + patience - min(_STOP_SECONDS, patience / 2)
        if now >= deadline:
            # The epoch in flight took too long: give it up. It is not committed, so nothing is lost.
            for name in chosen:
                spark.sparkContext.cancelJobGroup(_job_group(config.pipeline, name))
            if now >= deadline + _GIVE_UP_SECONDS:
                LOGGER.warning("a sink did not stop in time; what it had not committed is read again")
                return
        threads[0].join(0.1)
        threads.sort(key=lambda thread: not thread.is_alive())


def _loop(
    config: PipelineConfig,
    name: str,
    spark: SparkSession,
    observer: Observer,
    stop: threading.Event,
    once: bool,
) -> Loop:
    instance = Identity.new(config.pipeline, name)
    # A session of its own on the same Spark: what is set for one sink's jobs is not set for another's.
    engine = Engine(spark.newSession())
    return Loop(name, partial(make_sink, config, instance, engine, observer, stop.wait), observer, stop, once)


def _job_group(pipeline: str, sink: str) -> str:
    return f"rivermouth {pipeline} {sink}"


def _start(loop: Loop, spark: SparkSession, pipeline: str) -> threading.Thread:
    def body() -> None:
        spark.sparkContext.setJobGroup(_job_group(pipeline, loop.name), f"sink {loop.name}")
        # Its own pool in the fair scheduler, so that no sink waits behind another's jobs.
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", loop.name)
        loop.run()

    thread = threading.Thread(target=body, name=f"sink {loop.name}", daemon=True)
    thread.start()
    return thread


def make_sink(
    config: PipelineConfig,
    identity: Identity,
    engine: Engine,
    observer: Observer,
    sleep: Callable[[float], object] = time.sleep,
    part: str = "",
) -> Sink:
    """An instance of one of a pipeline's sinks, or a part of it; it owns nothing before its claim."""
    name = identity.sink
    source = open_source(
        config, name, engine, lambda code, message: observer.emit(SourceWarning(name, code, message))
    )
    try:
        return Sink(identity, config.sinks[name], source, observer, sleep, part)
    except BaseException:
        source.close()
        raise


def open_source(
    config: PipelineConfig, name: str, engine: Engine, warn: Callable[[str, str], None]
) -> Source:
    """The source of one of a pipeline's sinks, as that sink sees it; `warn` hears codes and messages."""
    sink = config.sinks[name]
    described = config.sources[sink.source]
    scope = Scope(
        config.pipeline,
        name,
        sink.config.table_uri,
        tuple(sink.topics) if sink.topics is not None else None,
        sink.topic_pattern,
        sink.config.max_batch_size,
        warn,
    )
    return sources.connectors()[described.connector](described.config, scope, engine)


@contextmanager
def signals(stop: threading.Event, patience: float) -> Iterator[None]:
    """The first SIGTERM or SIGINT asks the sinks to finish, within `patience` seconds; the second ends it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, _frame: object) -> None:
        if stop.is_set():
            if sys.stderr.isatty():
                os.write(2, b"\x1b[?25h\n")  # the live table hides the cursor
            os._exit(128 + number)  # the JVM sees its input close, and ends with its workers
        stop.set()
        LOGGER.info("stopping after the epoch in flight; a second signal stops at once")
        threading.Thread(target=last_resort, name="last resort", daemon=True).start()

    ended = threading.Event()

    def last_resort() -> None:
        if not ended.wait(patience + _LAST_RESORT_SECONDS):
            LOGGER.error("the process did not end in time and is ended; what was not committed is read again")
            os._exit(1)

    previous = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        ended.set()
        for number, handler in previous.items():
            signal.signal(number, handler)
