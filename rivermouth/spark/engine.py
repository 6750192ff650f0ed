"""What a source works with: a JVM, and Spark on it.

A run has both. A command that only asks a source where its records begin and end needs the JVM alone, which
is up in a second, and for many sources not even that: it is started when first asked for.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from rivermouth.errors import SetupError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rivermouth.spark.gateway import Jvm
    from rivermouth.spark.scratch import Scratch


class Engine:
    """A running Spark session, as a source sees it."""

    def __init__(self, spark: SparkSession) -> None:
        """Use this session; whoever started it stops it."""
        self._session = spark

    @property
    def jvm(self) -> Any:
        """The driver's JVM, for Java's own classes."""
        return self.spark._jvm

    @property
    def spark(self) -> SparkSession:
        """The session, to read with."""
        return self._session


class JvmOnly(Engine):
    """No Spark, and a JVM only if somebody asks for it; a context that ends it."""

    def __init__(self) -> None:
        self._started: tuple[Jvm, Scratch] | None = None

    @property
    def jvm(self) -> Any:
        """The JVM, started now if need be."""
        if self._started is None:
            from rivermouth.spark import session

            self._started = session.start_jvm()
        return self._started[0].gateway.jvm

    @property
    def spark(self) -> SparkSession:
        """There is none."""
        raise SetupError("there is no Spark session here, only a JVM")

    def __enter__(self) -> JvmOnly:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._started is not None:
            jvm, scratch = self._started
            self._started = None
            jvm.end()
            scratch.remove()
