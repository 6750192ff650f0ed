"""One epoch's Spark job: read a range, decode it, write it; then check that nothing vanished."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

from rivermouth.errors import AccountingMismatch, BadRecord, EngineFailed, EngineLost
from rivermouth.pipeline.task import RESULT_DDL, Result, Task, gather
from rivermouth.records import Offsets
from rivermouth.sources.base import RecordsPerOffset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_HEADERS = "coalesce(headers, cast(array() as array<struct<key: string, value: binary>>))"
_NOISE = re.compile(
    r"^(\s+at |\s*File |Traceback|Driver stacktrace|\s*\.\.\. \d+ more|\s*\^+|\s*$"
    r"|An error occurred while calling|\s*An exception was thrown from the Python worker)"
)
_PYTHON_ERROR = re.compile(
    r"^(?!(?:org|java|javax|scala|com|io|net)\.)"
    r"(?:(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Invalid)|rivermouth\.errors\.\w+): "
)
_JAVA_CLASS = re.compile(r"^(?:(?:[a-z][\w$]*\.){2,}[\w$]+: )+")


class Readable(Protocol):
    """What an epoch reads: a source, or something else that gives records."""

    @property
    def records_per_offset(self) -> RecordsPerOffset: ...

    def read(self, start: Offsets, end: Offsets) -> DataFrame: ...


def execute(
    source: Readable, start: Offsets, end: Offsets, task: Task, *, fail_on_bad_record: bool
) -> Result:
    """Run the job of an epoch; its files are written, and nothing refers to them yet."""
    from py4j.protocol import Py4JError, Py4JNetworkError
    from pyspark.errors import PySparkException
    from pyspark.sql.functions import expr

    try:
        # Spark's Arrow writer goes over all rows so far for each null in a list: 50,000 nulls take seconds.
        records = source.read(start, end).withColumn("headers", expr(_HEADERS))
        frame = records.mapInArrow(task.run, RESULT_DDL)
        result = gather([(row.kind, row.body) for row in frame.collect()])
    except (Py4JNetworkError, ConnectionError) as error:
        raise EngineLost("the Spark process ended while it worked on an epoch") from error
    except (PySparkException, Py4JError) as error:
        raise EngineFailed(f"epoch {task.epoch}, {_range(start, end)}: {root_cause(str(error))}") from error
    if result.rejected and fail_on_bad_record:
        count = sum(result.rejected.values())
        raise BadRecord(
            f"epoch {task.epoch} has {count} bad record{'s' * (count > 1)}, one is {result.sample}"
        )
    length = sum(end[p] - start[p] for p in end)
    least = length if source.records_per_offset == "one" else 0
    check(result, task, least, length if source.records_per_offset != "unknown" else None)
    return result


def check(result: Result, task: Task, least: int = 0, most: int | None = None) -> None:
    """read = written + rejected, and as many as the range can hold, or the epoch is not committed."""
    rejected = sum(result.rejected.values())
    if result.read != result.written + rejected:
        raise AccountingMismatch(
            f"epoch {task.epoch} read {result.read} records, wrote {result.written} and rejected {rejected}"
        )
    kept = sum(file.rows for file in result.dead_letters)
    if task.dead_letters and kept != rejected:
        raise AccountingMismatch(f"epoch {task.epoch} rejected {rejected} records and kept {kept}")
    if result.read < least or (most is not None and result.read > most):
        length = least if most is None else most
        raise AccountingMismatch(f"epoch {task.epoch} read {result.read} records of a range of {length}")


def _range(start: Offsets, end: Offsets) -> str:
    """Where an epoch was reading, for people; the first few partitions will do."""
    parts = [f"{p} offsets {start[p]} to {end[p] - 1}" for p in sorted(end)]
    return ", ".join(parts[:3]) + (f" and {len(parts) - 3} more partitions" if len(parts) > 3 else "")


def root_cause(text: str) -> str:
    """The line of a Spark error that says what went wrong, without its stack traces."""
    lines = [line.strip().removeprefix(": ") for line in text.splitlines() if not _NOISE.match(line)]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    python = [line for line in lines if _PYTHON_ERROR.match(line)]
    chosen = (python[-1:] or causes[-1:] or lines or ["the Spark job failed"])[0]
    if chosen.endswith("long overflow"):  # Spark's Kafka reader, from milliseconds to microseconds
        return "long overflow: a record's timestamp is too large, such as one in nanoseconds"
    return _JAVA_CLASS.sub("", chosen) or chosen
