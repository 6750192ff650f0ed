"""How large the Arrow batches are in which Spark hands records to the workers.

Spark can keep a batch below a number of bytes, and then weighs the whole batch again for each row: nearly
half of the JVM's work. Where the records are known to be small, a number of rows is limit enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 50_000
WEIGHED = 64 * 1024 * 1024
UNWEIGHED = 2**31 - 1  # Spark's own word for: do not look

# The first epoch of an owner finds out how large the records are, and is kept small for that.
FIRST_EPOCH = ROWS

_BYTES_KEY = "spark.sql.execution.arrow.maxBytesPerBatch"


def limit(largest: int | None, budget: int) -> int:
    """The limit in bytes, given the largest record seen so far; None: none was seen yet."""
    return UNWEIGHED if largest is not None and largest * ROWS <= budget else WEIGHED


def budget(heap: int, tasks: int) -> int:
    """What a batch may weigh when every record is as large as the largest: a part of each task's memory."""
    return min(256 * 1024 * 1024, heap // (4 * tasks))


def apply(spark: SparkSession, largest: int | None) -> None:
    """Set the limit for a sink's next job, unless the user has set one."""
    if spark.conf.get(_BYTES_KEY, None) in (str(WEIGHED), str(UNWEIGHED)):
        jvm: Any = spark._jvm
        most = budget(jvm.java.lang.Runtime.getRuntime().maxMemory(), spark.sparkContext.defaultParallelism)
        spark.conf.set(_BYTES_KEY, str(limit(largest, most)))
