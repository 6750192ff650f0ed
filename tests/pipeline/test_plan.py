"""When an epoch starts and what it takes: numbers in, a decision out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rivermouth.pipeline.plan import Limits, due, ends, share
from rivermouth.records import Bounds, Partition

A, B, C = (Partition("t", n) for n in range(3))
LIMITS = Limits(batch_size=100, flush_seconds=5, most=1000)


@pytest.mark.parametrize(
    ("waiting", "waited", "expected"),
    [(0, 99, False), (1, 0, False), (1, 4.9, False), (1, 5, True), (99, 0, False), (100, 0, True)],
)
def test_an_epoch_starts_on_size_or_age(waiting, waited, expected):
    assert due(waiting, waited, LIMITS) is expected


def test_all_that_waits_is_taken_when_it_fits():
    assert share({A: 5, B: 0}, {A: 10, B: 7}, 12) == {A: 10, B: 7}
    assert share({A: 5, B: 0}, {A: 10**9, B: 7}, None) == {A: 10**9, B: 7}


def test_what_one_partition_leaves_over_goes_to_the_others():
    assert share({A: 0, B: 0, C: 0}, {A: 10, B: 1000, C: 1000}, 100) == {A: 10, B: 45, C: 45}


@given(
    st.dictionaries(st.integers(0, 50), st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1),
    st.integers(1, 10**6),
)
def test_a_share_is_whole_fair_and_within_its_limit(partitions, most):
    position = {Partition("t", n): start for n, (start, _) in partitions.items()}
    heads = {Partition("t", n): start + waits for n, (start, waits) in partitions.items()}
    end = share(position, heads, most)
    taken = {p: end[p] - position[p] for p in heads}
    assert all(0 <= taken[p] <= heads[p] - position[p] for p in heads)
    assert sum(taken.values()) == min(most, sum(heads.values()) - sum(position.values()))
    unfinished = [taken[p] for p in heads if end[p] < heads[p]]
    assert not unfinished or max(taken.values()) - min(unfinished) <= 1


def test_a_position_within_bounds_reads_to_the_head():
    assert ends({A: 10, B: 20}, {A: Bounds(10, 20), B: Bounds(0, 20)}) == {A: 20, B: 20}
