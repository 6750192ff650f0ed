"""What to do next, as a table of cases: what the table says, what the source says, what comes of it."""

from __future__ import annotations

import pytest

from rivermouth.delta.progress import Progress
from rivermouth.errors import (
    AccountingMismatch,
    DataLoss,
    DeltaCommitFailed,
    EngineFailed,
    Fenced,
    ProgressLost,
    SourceChanged,
    SourceUnavailable,
    TableRestored,
)
from rivermouth.pipeline import decide
from rivermouth.pipeline.decide import Loss, Verdict
from rivermouth.records import Bounds, Partition

A, B = Partition("a", 0), Partition("a", 1)
KNOWN = Progress(offsets={A: 5}, topics={"a": 1})


@pytest.mark.parametrize(
    ("offset", "bound", "identity", "expected", "words"),
    [
        # the table's offset, what the source has, the topic's identity; the loss, and how it is told
        (5, Bounds(0, 9), 1, None, ""),
        (5, Bounds(5, 9), 1, None, ""),
        (9, Bounds(0, 9), 1, None, ""),
        (9, Bounds(9, 9), 1, None, ""),
        (5, Bounds(6, 9), 1, Loss("expired", A, 5, 6, 1), "offsets 5 to 5 expired"),
        (5, Bounds(10, 20), 1, Loss("expired", A, 5, 10, 5), "offsets 5 to 9 expired"),
        (0, Bounds(10, 10), 1, Loss("expired", A, 0, 10, 10), "offsets 0 to 9 expired"),
        (25, Bounds(10, 20), 1, Loss("truncated", A, 25, 20, None), "the source ends at 20"),
        (5, None, None, Loss("gone", A, 5, None, None), "gone from the source"),
        (5, None, 1, Loss("gone", A, 5, None, None), "gone from the source"),
        (5, Bounds(0, 9), 2, Loss("recreated", A, 5, 0, None), "created again"),
        (5, Bounds(7, 9), 2, Loss("recreated", A, 5, 7, None), "created again"),
        (5, None, 2, Loss("recreated", A, 5, None, None), "created again"),
        (5, Bounds(0, 9), None, None, ""),  # a source whose topics have no identity
    ],
)
def test_losses(offset, bound, identity, expected, words):
    bounds = {A: bound} if bound else {}
    identities = {"a": identity} if identity else {}
    found = decide.losses(KNOWN, {A: offset}, bounds, identities)
    assert found == ([expected] if expected else [])
    if not expected:
        decide.refuse(found)
        return
    with pytest.raises(ProgressLost if expected.kind == "recreated" else DataLoss, match=words):
        decide.refuse(found)


def test_a_long_list_of_losses_is_cut():
    found = [Loss("expired", Partition("t", n), 0, 10, 10) for n in range(8)]
    with pytest.raises(DataLoss, match=r"t/0: offsets 0 to 9 expired .*t/4.*and 3 more"):
        decide.refuse(found)


@pytest.mark.parametrize(
    ("found", "offsets", "topics"),
    [
        ([Loss("expired", A, 5, 10, 5)], {A: 10}, {}),
        ([Loss("truncated", A, 25, 20, None)], {A: 20}, {}),
        # That a topic is gone is told once; one of its name is a new one.
        ([Loss("gone", A, 5, None, None)], {A: 0, B: 0}, {"a": 0}),
        # A partition that the new topic has not must not be taken up later where the old one was.
        ([Loss("recreated", A, 5, 3, None)], {A: 3, B: 0}, {"a": 2}),
        ([Loss("recreated", A, 5, 3, None), Loss("recreated", B, 7, None, None)], {A: 3, B: 0}, {"a": 2}),
    ],
)
def test_where_reading_goes_on(found, offsets, topics):
    known = Progress(offsets={A: 5, B: 7, Partition("b", 0): 9}, topics={"a": 1, "b": 3})
    assert decide.behind(found, known, {"a": 2, "b": 3}) == (offsets, topics)


@pytest.mark.parametrize(
    ("version", "replaced", "policy", "expected"),
    [
        (None, False, "fail", False),
        (None, False, "rewind", False),
        (None, False, "continue", False),
        (7, False, "rewind", True),
        (7, False, "continue", False),
        (7, False, "fail", "set back by version 7"),
        (None, True, "rewind", True),
        (None, True, "continue", False),
        (None, True, "fail", "replaced by another one"),
        (7, True, "fail", "replaced by another one"),
    ],
)
def test_after_a_restore(version, replaced, policy, expected):
    if isinstance(expected, str):
        with pytest.raises(TableRestored, match=expected):
            decide.after_restore(version, replaced, policy)
    else:
        assert decide.after_restore(version, replaced, policy) is expected


def test_a_rewind_takes_the_offsets_of_then_and_where_later_partitions_began():
    then = Progress(2, 4, 3, 3, {A: 10}, {"a": 1})
    now = Progress(5, 9, 8, 8, {A: 90, B: 70, Partition("b", 0): 40}, {"a": 2, "b": 3})
    assert decide.rewound(now, then, {A: 30, B: 2}) == Progress(
        5, 9, 8, 8, {A: 10, B: 2, Partition("b", 0): 40}, {"a": 1, "b": 3}
    )


def test_a_topic_that_was_told_as_gone_may_come_back():
    known = Progress(offsets={A: 0}, topics={"a": 0})
    assert decide.losses(known, {A: 0}, {A: Bounds(0, 9)}, {"a": 2}) == []
    decide.ensure_topics(known, {"a": 2})


def test_what_was_read_from_another_topic_is_not_committed():
    decide.ensure_topics(KNOWN, {"a": 1, "new": 5})
    with pytest.raises(SourceChanged, match="'a'"):
        decide.ensure_topics(KNOWN, {"a": 2})


RETRYABLE = [SourceUnavailable, EngineFailed, DeltaCommitFailed, SourceChanged]
FINAL = [Fenced, ProgressLost, DataLoss, TableRestored, AccountingMismatch]


@pytest.mark.parametrize("kind", RETRYABLE)
@pytest.mark.parametrize(
    ("failures", "once", "stopping", "expected"),
    [
        (1, False, False, Verdict("retry", 1.0)),
        (2, False, False, Verdict("retry", 2.0)),
        (6, False, False, Verdict("retry", 30.0)),
        (5000, False, False, Verdict("retry", 30.0)),
        (4, True, False, Verdict("retry", 8.0)),
        (5, True, False, Verdict("fail")),
        (1, False, True, Verdict("stop")),
        (5, True, True, Verdict("stop")),
    ],
)
def test_an_error_that_may_pass(kind, failures, once, stopping, expected):
    assert decide.after_failure(kind("x"), failures=failures, once=once, stopping=stopping) == expected


@pytest.mark.parametrize("kind", FINAL)
@pytest.mark.parametrize("stopping", [True, False])
def test_an_error_that_will_not_pass(kind, stopping):
    error = kind("x")
    assert decide.after_failure(error, failures=1, once=False, stopping=stopping) == Verdict("fail")


def test_a_restore_met_while_running_is_decided_by_the_next_claim():
    error = TableRestored("x", retryable=True)
    assert decide.after_failure(error, failures=1, once=False, stopping=False).action == "retry"
