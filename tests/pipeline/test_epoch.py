"""Nothing vanishes, and an error says what went wrong."""

from __future__ import annotations

import dataclasses
import datetime

import pytest

from rivermouth.delta.files import FileSpec
from rivermouth.errors import AccountingMismatch
from rivermouth.formats import create
from rivermouth.pipeline.epoch import check, root_cause
from rivermouth.pipeline.task import FilePlan, Result, Task

PLAN = FilePlan("/t", create("string").schema, (), "snappy", 1)
TASK = Task("string", None, PLAN, PLAN, "shop", "orders", 7, datetime.date(2026, 1, 1))


def file(rows: int) -> FileSpec:
    return FileSpec("f", 1, rows, {}, "{}")


GOOD = Result(10, [file(4), file(3)], [file(3)], {"InvalidJson": 2, "NullValue": 1}, None)


def test_read_equals_written_plus_dead():
    check(GOOD, TASK)
    check(GOOD, TASK, 10, 10)
    check(GOOD, TASK, 0, 12)


@pytest.mark.parametrize(
    "change",
    [
        {"read": 11},
        {"read": 9},
        {"events": [file(4)]},
        {"rejected": {"NullValue": 2}},
        {"dead_letters": [file(2)]},
    ],
)
def test_a_record_that_vanished_or_doubled_is_an_error(change):
    with pytest.raises(AccountingMismatch):
        check(dataclasses.replace(GOOD, **change), TASK)


def test_a_range_must_be_read_whole():
    with pytest.raises(AccountingMismatch, match="10 records of a range of 12"):
        check(GOOD, TASK, 12, 12)


def test_more_records_than_a_range_can_hold_are_an_error():
    with pytest.raises(AccountingMismatch, match="10 records of a range of 9"):
        check(GOOD, TASK, 0, 9)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            "An error occurred while calling o250.collectToPython.\n"
            ": org.apache.spark.SparkException: Job 3 cancelled as part of cancellation of all jobs\n"
            "\tat org.apache.spark.errors.SparkCoreErrors$.jobCancelled(SparkCoreErrors.scala:1)\n",
            "Job 3 cancelled as part of cancellation of all jobs",
        ),
        (
            "\n  An exception was thrown from the Python worker. Please see the stack trace below.\n"
            'Traceback (most recent call last):\n  File "x.py", line 1, in f\n    g()\n    ^^^\n'
            "OSError: [Errno 28] No space left on device\n",
            "OSError: [Errno 28] No space left on device",
        ),
        (
            "An error occurred while calling o1.collectToPython.\n"
            ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 failed 4 times\n"
            "Driver stacktrace:\n\tat a.b.C(D.scala:1)\n"
            "Caused by: java.util.concurrent.ExecutionException: org.apache.kafka.TimeoutException: x\n"
            "\t... 3 more\n"
            "Caused by: org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node\n",
            "Timed out waiting for a node",
        ),
        (
            'Traceback (most recent call last):\n  File "x.py", line 1, in f\n    raise DeltaWriterFailed(\n'
            "rivermouth.errors.DeltaWriterFailed: DeltaWriterFailed: the folder is full\n",
            "DeltaWriterFailed: the folder is full",
        ),
        ("", "the Spark job failed"),
    ],
)
def test_the_line_that_says_it_is_found(text, cause):
    assert root_cause(text) == cause
