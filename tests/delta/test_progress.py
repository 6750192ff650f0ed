"""What the log says of a sink's progress, and what follows: a table of cases, no I/O."""

from __future__ import annotations

import pytest

from rivermouth.delta import progress
from rivermouth.delta.progress import AppIds, Progress
from rivermouth.errors import Fenced, ProgressLost
from rivermouth.records import Partition

IDS = AppIds("shop", "orders")
P0, P1 = Partition("or/ders", 0), Partition("or/ders", 1)


def test_progress_is_read_from_the_sinks_own_app_ids_only():
    txns = {
        "rivermouth/shop/orders/epoch": 7,
        "rivermouth/shop/orders/generation": 3,
        "rivermouth/shop/orders/rejects": 6,
        "rivermouth/shop/orders/rejects_landed": 6,
        "rivermouth/shop/orders/offset/or%2Fders/0": 100,
        "rivermouth/shop/orders/topic/or%2Fders": 42,
        "rivermouth/shop/orders2/epoch": 99,
        "rivermouth/other/orders/epoch": 99,
        "somebody-else": 1,
    }
    assert progress.parse(txns, IDS) == Progress(3, 7, 6, 6, {P0: 100}, {"or/ders": 42})


def test_a_table_without_progress_is_at_the_beginning():
    assert progress.parse({}, IDS) == Progress()


@pytest.mark.parametrize("topic", ["orders", "a/b", "a b", "ä%2F", "offset/0", ".."])
def test_any_topic_name_survives_the_log(topic):
    partition = Partition(topic, 12)
    txns = {IDS.offset(partition): 5, IDS.topic(topic): 9}
    read = progress.parse(txns, IDS)
    assert read.offsets == {partition: 5}
    assert read.topics == {topic: 9}


def test_a_claim_takes_the_next_generation_and_pins_new_partitions_only():
    seen = Progress(3, 7, 6, 2, {P0: 100}, {})
    assert progress.claim(seen, seen, IDS, {P0: 100, P1: 0}, {"or/ders": 42}) == {
        IDS.generation: 4,
        IDS.rejects_landed: 6,
        IDS.offset(P1): 0,
        IDS.topic("or/ders"): 42,
    }


def test_a_claim_never_moves_a_known_offset():
    seen = Progress(offsets={P0: 100})
    with pytest.raises(ProgressLost, match="may not move"):
        progress.claim(seen, seen, IDS, {P0: 0}, {})


def test_a_claim_that_rewinds_sets_offsets_and_topics_back():
    seen = Progress(3, 7, 6, 6, {P0: 100, P1: 5}, {"or/ders": 2})
    base = Progress(3, 7, 6, 6, {P0: 40, P1: 5}, {"or/ders": 1})
    assert progress.claim(seen, base, IDS, base.offsets, {"or/ders": 2}) == {
        IDS.generation: 4,
        IDS.rejects_landed: 6,
        IDS.offset(P0): 40,
        IDS.topic("or/ders"): 1,
    }


def test_a_claim_leaves_a_topic_as_the_table_knows_it():
    seen = Progress(topics={"or/ders": 1})
    assert IDS.topic("or/ders") not in progress.claim(seen, seen, IDS, {}, {"or/ders": 2})


def test_a_skip_is_an_epoch_with_rejects_that_may_go_back():
    seen = Progress(3, 7, 5, 4, {P0: 100}, {"or/ders": 1})
    assert progress.skip(seen, IDS, 3, {P0: 0}, {"or/ders": 2}) == {
        IDS.epoch: 8,
        IDS.generation: 3,
        IDS.rejects: 8,
        IDS.rejects_landed: 5,
        IDS.offset(P0): 0,
        IDS.topic("or/ders"): 2,
    }


def test_a_part_of_a_sink_has_progress_of_its_own():
    part = progress.AppIds("p", "s", "replay")
    whole = progress.AppIds("p", "s")
    txns = {part.epoch: 4, part.offset(P0): 7, whole.offset(P0): 9}
    assert progress.parse(txns, whole) == Progress(offsets={P0: 9})
    assert progress.parse(txns, part) == Progress(epoch=4, offsets={P0: 7})


def test_an_epoch_moves_what_moved_and_nothing_else():
    seen = Progress(3, 7, 0, 0, {P0: 100, P1: 50}, {})
    assert progress.advance(seen, IDS, 3, {P0: 120, P1: 50}, rejects=False) == {
        IDS.epoch: 8,
        IDS.generation: 3,
        IDS.offset(P0): 120,
    }


def test_an_epoch_with_rejects_says_so_and_the_next_one_says_they_landed():
    first = Progress(3, 7, 0, 0, {P0: 100}, {})
    assert progress.advance(first, IDS, 3, {P0: 101}, rejects=True)[IDS.rejects] == 8
    second = Progress(3, 8, 8, 0, {P0: 101}, {})
    assert progress.advance(second, IDS, 3, {P0: 102}, rejects=False)[IDS.rejects_landed] == 8


def test_an_epoch_never_goes_back():
    with pytest.raises(ProgressLost, match="back"):
        progress.advance(Progress(offsets={P0: 100}), IDS, 1, {P0: 99}, rejects=False)


def test_an_owner_that_was_replaced_stops_and_names_the_new_one():
    with pytest.raises(Fenced, match="host:1:abc"):
        progress.ensure_owner(Progress(generation=4), 3, "orders", lambda: "host:1:abc")
    progress.ensure_owner(Progress(generation=3), 3, "orders", lambda: None)
