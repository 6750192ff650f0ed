"""Start and stop the Spark session of a pipeline: embedded by default, quiet, leaving nothing behind."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rivermouth.errors import SetupError
from rivermouth.spark import archive, command, gateway, jars, java, log4j, machine, settings
from rivermouth.spark.scratch import Scratch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The JVM and directory of each session started here, by its context; asking the JVM for an id may fail.
_running: dict[int, tuple[gateway.Jvm, Scratch]] = {}


def start(
    app_name: str,
    master: str = "local[*]",
    conf: Mapping[str, str] | None = None,
    verbose: bool = False,
    progress: jars.Progress | None = None,
) -> SparkSession:
    """Start a Spark session; `conf` wins over every default of ours."""
    from pyspark import SparkContext

    if SparkContext._active_spark_context is not None:
        raise SetupError("this process already has a Spark session", hint="stop it before starting another")
    runtime = java.find()
    files = jars.ensure(progress=progress)
    scratch = Scratch()
    try:
        values = settings.properties(
            app_name,
            master,
            conf or {},
            files,
            scratch.path,
            _java_options(scratch.path, verbose),
            cores=machine.cores(),
            memory=machine.memory(),
        )
        return _start(runtime, files, values, scratch, verbose)
    except BaseException:
        scratch.remove()
        raise


def stop(spark: SparkSession) -> None:
    """End the session, its workers and its JVM, and wait until they are gone."""
    from py4j.protocol import Py4JError

    jvm, scratch = _running.pop(id(spark.sparkContext))
    try:
        with contextlib.suppress(Py4JError, ConnectionError):  # a JVM that died before needs no stop
            spark.stop()
    finally:
        jvm.end()
        _forget_jvm()
        scratch.remove()


def start_jvm() -> tuple[gateway.Jvm, Scratch]:
    """Start a JVM with Spark's classes and ours and no session; the caller ends both."""
    runtime, files, scratch = java.find(), jars.ensure(), Scratch()
    try:
        options = settings.joined(_java_options(scratch.path, verbose=False))
        values = {"spark.driver.memory": "256m", "spark.driver.extraJavaOptions": options}
        properties = scratch.path / "spark.properties"
        properties.touch()
        line = command.embedded(runtime, command.all_jars(_spark_home(), files), values, properties)
        return gateway.launch(line, {"JAVA_HOME": str(runtime.home)}, scratch.path, False), scratch
    except BaseException:
        scratch.remove()
        raise


def prepare() -> None:
    """Make starts of embedded sessions quicker on this machine, once; it costs as much as a few starts."""
    archive.make(java.find(), command.all_jars(_spark_home(), jars.ensure()), command.MODULE_OPTIONS)


def is_prepared() -> bool:
    """Whether `prepare` has been done for the present Java and jars."""
    return archive.path(java.find(), command.all_jars(_spark_home(), jars.ensure())).is_file()


def _start(
    runtime: java.Java, files: list[Path], values: Mapping[str, str], scratch: Scratch, verbose: bool
) -> SparkSession:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    properties = scratch.path / "spark.properties"
    properties.touch(mode=0o600)
    properties.write_text(settings.as_file(values), encoding="utf-8")
    environment = {"JAVA_HOME": str(runtime.home), "PYSPARK_PYTHON": _worker_python(values["spark.master"])}
    if settings.is_embedded(values["spark.master"]):
        environment["SPARK_LOCAL_IP"] = "127.0.0.1"
        line = command.embedded(runtime, command.all_jars(_spark_home(), files), values, properties)
    else:
        line = command.submitted(_spark_home(), properties)
    jvm = gateway.launch(line, environment, scratch.path, verbose)
    interrupt = signal.getsignal(signal.SIGINT)
    try:
        with gateway.environment_of(environment):
            SparkContext._ensure_initialized(gateway=jvm.gateway)
            spark = SparkSession.builder.getOrCreate()
    except Exception as error:
        jvm.end()
        _forget_jvm()
        raise SetupError(f"Spark did not start: {_first_line(error)}") from error
    finally:
        # pyspark takes Ctrl-C for itself; what to do about it is the pipeline's decision.
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, interrupt)
    _running[id(spark.sparkContext)] = (jvm, scratch)
    return spark


def _forget_jvm() -> None:
    """Keep pyspark from handing the ended JVM to the next session."""
    from pyspark import SparkContext

    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkContext._active_spark_context = None


def _spark_home() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent


def _java_options(folder: Path, verbose: bool) -> list[str]:
    return [
        *log4j.configure(folder, verbose),
        f"-Djava.io.tmpdir={folder}",
        f"-Dderby.system.home={folder}",
    ]


def _worker_python(master: str) -> str:
    """The running interpreter, which has the packages; a cluster may have its own."""
    if settings.is_embedded(master):
        return sys.executable
    return os.environ.get("PYSPARK_PYTHON", sys.executable)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
