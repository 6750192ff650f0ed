"""Where a sink stands, given what its table and its source say: a table of cases."""

from __future__ import annotations

import pytest

from rivermouth.delta.progress import Progress
from rivermouth.pipeline.status import SinkStatus, SourceSide, Standing, compare
from rivermouth.records import Bounds, Partition

T0, T1, U0 = Partition("t", 0), Partition("t", 1), Partition("u", 0)


def waiting(start, end):
    return sum(end[p] - start[p] for p in end)


CASES = {
    "in the middle": ({T0: 5}, {T0: Bounds(0, 9)}, Standing(T0, 5, Bounds(0, 9), 4)),
    "at the head": ({T0: 9}, {T0: Bounds(0, 9)}, Standing(T0, 9, Bounds(0, 9), 0)),
    "new topic": ({}, {T0: Bounds(2, 9)}, Standing(T0, None, Bounds(2, 9), None, "new")),
    "gone": ({T0: 5}, {}, Standing(T0, 5, None, None, "gone")),
    "expired": ({T0: 5}, {T0: Bounds(7, 9)}, Standing(T0, 5, Bounds(7, 9), 4, "expired")),
    "truncated": ({T0: 5}, {T0: Bounds(0, 3)}, Standing(T0, 5, Bounds(0, 3), None, "truncated")),
}


@pytest.mark.parametrize("name", CASES)
def test_a_partition(name):
    offsets, bounds, expected = CASES[name]
    assert compare(Progress(1, 1, offsets=offsets), bounds, {}, waiting) == [expected]


def test_a_new_partition_of_a_known_topic_begins_at_its_beginning():
    found = compare(Progress(1, 1, offsets={T0: 9}), {T0: Bounds(0, 9), T1: Bounds(2, 5)}, {}, waiting)
    assert found[1] == Standing(T1, None, Bounds(2, 5), 3, "new")


def test_a_topic_that_was_created_again():
    known = Progress(1, 1, offsets={T0: 5, U0: 1}, topics={"t": 1, "u": 1})
    bounds = {T0: Bounds(0, 9), U0: Bounds(0, 1)}
    found = compare(known, bounds, {"t": 2, "u": 1}, waiting)
    assert [(s.condition, s.lag) for s in found] == [("recreated", None), ("", 0)]


@pytest.mark.parametrize(("lags", "total"), [([], None), ([None], None), ([0, None], 0), ([2, 3], 5)])
def test_lag_is_the_sum_of_what_is_known(lags, total):
    source = SourceSide([Standing(Partition("t", n), lag=lag) for n, lag in enumerate(lags)])
    assert SinkStatus("s", "t", "d", "x", None, None, source).lag == total
