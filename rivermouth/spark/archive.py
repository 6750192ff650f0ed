"""An archive of Spark's loaded classes, which halves the work of a start; made by `rivermouth setup`."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from rivermouth.errors import SetupError
from rivermouth.spark import cache
from rivermouth.spark.java import Java

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

_KEPT = 3  # one is 100 MB; several environments on one machine may each have theirs
_DUMP_TIMEOUT = 600

# Loaded by name, because reading from Kafka would need a broker.
_KAFKA_CLASSES = (
    "org.apache.kafka.clients.admin.KafkaAdminClient",
    "org.apache.kafka.clients.consumer.KafkaConsumer",
    "org.apache.kafka.clients.consumer.internals.ClassicKafkaConsumer",
    "org.apache.kafka.clients.consumer.internals.Fetcher",
    "org.apache.spark.sql.kafka010.KafkaSourceProvider",
    "org.apache.spark.sql.kafka010.KafkaRelation",
    "org.apache.spark.sql.kafka010.KafkaSourceRDD",
    "org.apache.spark.sql.kafka010.KafkaOffsetReaderAdmin",
    "org.apache.spark.sql.kafka010.consumer.KafkaDataConsumer$",
)


def path(java: Java, jars: Sequence[Path]) -> Path:
    """Where the archive for this Java and these jars belongs; it is of use to no other."""
    key = sha256(f"{java.home} {java.version}".encode())
    for jar in jars:
        stat = jar.stat()
        key.update(f"\0{jar} {stat.st_size} {stat.st_mtime_ns}".encode())
    return cache.directory() / "classes" / f"{key.hexdigest()[:16]}.jsa"


def options(java: Java, jars: Sequence[Path]) -> list[str]:
    """The JVM options that use the archive, if there is one; a JVM it does not fit starts without it."""
    archive = path(java, jars)
    return [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", "-Xlog:disable"] if archive.is_file() else []


def make(java: Java, jars: Sequence[Path], module_options: Sequence[str]) -> Path:
    """Run a small job, note which classes it loads, and let Java archive them."""
    target = path(java, jars)
    with cache.locked(cache.directory() / "classes.lock"):
        if target.is_file():
            return target
        cache.make(target.parent)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".make-") as folder:
            listed, archive = Path(folder) / "classes", Path(folder) / "archive"
            _note_classes(listed)
            _dump(java, jars, module_options, listed, archive)
            archive.replace(target)
        for old in sorted(target.parent.glob("*.jsa"), key=lambda file: file.stat().st_mtime)[:-_KEPT]:
            old.unlink()
    return target


def _note_classes(listed: Path) -> None:
    from rivermouth.spark import session

    conf = {"spark.driver.extraJavaOptions": f"-XX:DumpLoadedClassList={listed}"}
    spark = session.start("rivermouth-setup", "local[1]", conf)
    try:
        _exercise(spark)
    finally:
        session.stop(spark)


def _exercise(spark: SparkSession) -> None:
    """What every epoch does, so that its classes are loaded: SQL, Arrow to workers and back."""
    frame = spark.sql("SELECT id, CAST(id AS STRING) AS text FROM range(1000) WHERE id >= 0")
    frame.mapInArrow(_unchanged, "id long, text string").collect()
    loader = spark._jvm.org.apache.spark.util.Utils  # type: ignore[union-attr]
    for name in _KAFKA_CLASSES:
        loader.classForName(name, True, False)


def _unchanged(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    yield from batches


def _dump(
    java: Java, jars: Sequence[Path], module_options: Sequence[str], listed: Path, archive: Path
) -> None:
    command = [
        str(java.executable),
        "-Xshare:dump",
        f"-XX:SharedClassListFile={listed}",
        f"-XX:SharedArchiveFile={archive}",
        *module_options,
        *("-cp", os.pathsep.join(map(str, jars))),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", timeout=_DUMP_TIMEOUT, check=False
    )
    if done.returncode != 0 or not archive.is_file():
        said = "; ".join((done.stderr or done.stdout).strip().splitlines()[-3:])
        raise SetupError(f"Java could not archive Spark's classes: {said}", hint="rivermouth runs without it")
