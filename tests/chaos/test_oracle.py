"""The judge itself: it sees what is missing, doubled, foreign, out of order or by the wrong owner."""

from __future__ import annotations

import pytest

from tests.chaos.oracle import assert_in_order, assert_once


def claim(generation, instance="a"):
    return {"pipeline": "p", "sink": "s", "kind": "claim", "generation": generation, "instance": instance}


def epoch(number, start, end, generation=1, instance="a"):
    offsets = {"t/0": [start, end]}
    return {**claim(generation, instance), "kind": "epoch", "epoch": number, "offsets": offsets}


@pytest.mark.parametrize(
    ("stored", "told"),
    [
        ([1, 2], "2 records, 2 distinct, 3 were produced; missing: 3"),
        ([1, 2, 3, 2], "4 records, 3 distinct, 3 were produced; doubled: 2"),
        ([1, 2, 3, 9], "4 records, 4 distinct, 3 were produced; not of here: 9"),
        ([1, 1, 2], "3 records, 2 distinct, 3 were produced; missing: 3; doubled: 1"),
    ],
)
def test_it_says_which_numbers_are_wrong(stored, told):
    with pytest.raises(AssertionError, match=f"the table has {told}$"):
        assert_once("the table", {1, 2, 3}, stored)


def test_it_is_content_with_each_number_once_and_epochs_in_order():
    assert_once("the table", {1, 2, 3}, [3, 1, 2])
    assert_in_order([claim(1), epoch(1, 0, 5), epoch(2, 5, 9), claim(2, "b"), epoch(3, 9, 10, 2, "b")])
    assert_in_order([epoch(7, 50, 60), epoch(8, 60, 61)])  # a log that was cleaned up


@pytest.mark.parametrize(
    ("notes", "told"),
    [
        ([epoch(1, 0, 5), epoch(2, 6, 9)], "t/0 was read up to 5"),
        ([epoch(1, 0, 5), epoch(2, 4, 9)], "t/0 was read up to 5"),
        ([epoch(1, 5, 4)], "t/0 goes back"),
        ([epoch(1, 0, 5), epoch(3, 5, 9)], "epoch 1, then"),
        ([claim(1), epoch(1, 0, 5), epoch(1, 5, 9)], "epoch 1, then"),
        ([claim(2), claim(1)], "the generation went back from 2"),
        ([claim(1), claim(1, "b")], "a claim took no new generation"),
        ([claim(1), epoch(1, 0, 5, 2)], "a generation that was never claimed"),
        ([claim(1), claim(2, "b"), epoch(1, 0, 5, 1)], "the generation went back from 2"),
        ([claim(1), epoch(1, 0, 5, 1, "b")], "committed while a was the owner"),
    ],
)
def test_it_sees_epochs_that_do_not_follow_each_other(notes, told):
    with pytest.raises(AssertionError, match=told):
        assert_in_order(notes)
