"""Two instances of one sink: the last to claim goes on, the other stops, and nothing is doubled or lost."""

from __future__ import annotations

import pytest

from rivermouth.delta import dead_letters
from rivermouth.errors import Fenced
from rivermouth.observe.observer import Observer
from rivermouth.pipeline.run import make_sink
from rivermouth.records import Partition

ALL = Partition("numbers", 0)


@pytest.fixture
def instance(lake):
    """Makes an instance of the one sink of a pipeline, as a process of its own would."""
    source = {
        "connector": "generator",
        "config": {"topics": ["numbers"], "count": 1000, "broken": 0.1},
    }
    config = lake.config(source, {"t": {"schema": "n BIGINT NOT NULL"}})

    def make():
        observer = Observer(config.pipeline, {"t": config.sinks["t"].config.flush_interval})
        return make_sink(config, "t", lake.spark, observer)

    return make


def landed(lake):
    rows, distinct = lake.query("SELECT count(n), count(DISTINCT n) FROM {t}")[0]
    dead, dead_distinct = lake.query('SELECT count(*), count(DISTINCT "offset") FROM {t_dead_letters}')[0]
    assert (rows, dead) == (distinct, dead_distinct)
    return rows + dead


def test_the_last_to_claim_goes_on_and_the_other_stops_and_names_it(lake, instance):
    first, second = instance(), instance()
    first.claim()
    first.run_epoch({ALL: 300})
    second.claim()
    with pytest.raises(Fenced, match=second.identity.instance):
        first.run_epoch({ALL: 600})
    assert second.position == {ALL: 300}
    second.run_epoch({ALL: 1000})
    assert landed(lake) == 1000


def test_an_owner_replaced_while_its_job_ran_commits_nothing(lake, instance, monkeypatch):
    """It planned the very range that its successor lands."""
    first, second = instance(), instance()
    first.claim()
    first.run_epoch({ALL: 100})
    read = first.source.read

    def while_it_reads(start, end):
        second.claim()
        second.run_epoch({ALL: 500})
        return read(start, end)

    monkeypatch.setattr(first.source, "read", while_it_reads)
    with pytest.raises(Fenced):
        first.run_epoch({ALL: 500})
    second.run_epoch({ALL: 1000})
    assert landed(lake) == 1000


def test_a_claim_that_races_an_epoch_finishes_that_epochs_dead_letters(lake, instance, monkeypatch):
    first, second = instance(), instance()
    first.claim()
    resolve, land = second.source.resolve, dead_letters.land
    raced = []

    def while_it_resolves(known):
        if not raced:
            raced.append(True)
            with monkeypatch.context() as patch:  # the owner dies between its two commits
                patch.setattr(dead_letters, "land", lambda *arguments: None)
                first.run_epoch({ALL: 400})
        return resolve(known)

    monkeypatch.setattr(second.source, "resolve", while_it_resolves)
    second.claim()
    assert dead_letters.land is land
    assert second.position == {ALL: 400}
    assert landed(lake) == 400
    second.run_epoch({ALL: 1000})
    assert landed(lake) == 1000


def test_each_start_takes_the_next_generation(instance):
    for generation in (1, 2, 3):
        sink = instance()
        sink.claim()
        assert sink.progress.generation == generation
