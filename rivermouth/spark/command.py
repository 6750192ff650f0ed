"""The command line that starts a session's JVM."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from rivermouth.spark import archive
from rivermouth.spark.java import Java

# What Spark's own launcher opens to itself, without the vector module, which only its linear algebra uses.
_OPENED = (
    *("java.base/java.lang", "java.base/java.lang.invoke", "java.base/java.lang.reflect"),
    *("java.base/java.io", "java.base/java.net", "java.base/java.nio", "java.base/java.util"),
    *("java.base/java.util.concurrent", "java.base/java.util.concurrent.atomic"),
    *("java.base/jdk.internal.ref", "java.base/sun.nio.ch", "java.base/sun.nio.cs"),
    *("java.base/sun.security.action", "java.base/sun.util.calendar"),
    "java.security.jgss/sun.security.krb5",
)
MODULE_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "--enable-native-access=ALL-UNNAMED",
    *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
)
_COLLECTOR = re.compile(r"-XX:\+Use\w+GC")


def embedded(java: Java, jars: Sequence[Path], values: Mapping[str, str], properties: Path) -> list[str]:
    """Start Spark's main class ourselves: Spark's scripts first start another JVM to make this line."""
    classpath = [*map(str, jars), *filter(None, [values.get("spark.driver.extraClassPath")])]
    chosen = [
        *shlex.split(values.get("spark.driver.defaultJavaOptions", "")),
        *shlex.split(values["spark.driver.extraJavaOptions"]),
    ]
    if not any(_COLLECTOR.fullmatch(option) for option in chosen):
        chosen.insert(0, "-XX:+UseParallelGC")  # a small heap and no pauses to fear: the least CPU
    return [
        str(java.executable),
        f"-Xmx{values['spark.driver.memory']}",
        "-XX:+ExitOnOutOfMemoryError",  # half a JVM is worse than none: a new start goes on
        *MODULE_OPTIONS,
        *archive.options(java, jars),
        *chosen,
        *("-cp", os.pathsep.join(classpath)),
        "org.apache.spark.deploy.SparkSubmit",
        *("--properties-file", str(properties), "pyspark-shell"),
    ]


def submitted(spark_home: Path, properties: Path) -> list[str]:
    """Let Spark's own script start the driver, with the defaults a cluster's client is configured with."""
    script = spark_home / "bin" / "spark-submit"
    return [str(script), "--load-spark-defaults", "--properties-file", str(properties), "pyspark-shell"]


def all_jars(spark_home: Path, ours: Sequence[Path]) -> list[Path]:
    """Spark's jars and ours, always in the same order: an archive of classes is good for one order only."""
    return [*sorted((spark_home / "jars").glob("*.jar")), *ours]
