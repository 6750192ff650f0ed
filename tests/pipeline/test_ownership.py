"""Two instances of one sink: the last to claim goes on, the other stops, and nothing is doubled or lost."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from rivermouth.delta import commit, dead_letters
from rivermouth.errors import Fenced
from rivermouth.observe.observer import Observer
from rivermouth.pipeline.ownership import Identity
from rivermouth.pipeline.run import make_sink
from rivermouth.records import Partition
from rivermouth.spark.engine import Engine

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
        return make_sink(config, Identity.new(config.pipeline, "t"), Engine(lake.spark), observer)

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


def test_an_owner_replaced_between_its_commit_and_its_look_stops(lake, instance, monkeypatch):
    """The other claim is in the log when the first reads on: that generation is not its own."""
    first, second = instance(), instance()
    first.claim()
    real = commit._transact

    def overtaken(table, change):
        real(table, change)
        if table is first.table and not second.position:
            second.table.refresh()
            second.claim()

    monkeypatch.setattr(commit, "_transact", overtaken)
    with pytest.raises(Fenced, match=second.identity.instance):
        first.run_epoch({ALL: 300})
    assert second.position == {ALL: 300}
    with pytest.raises(Fenced):
        first.run_epoch({ALL: 600})
    second.run_epoch({ALL: 1000})
    assert landed(lake) == 1000


def test_an_instance_that_retries_does_not_take_the_sink_back(lake, instance):
    first, second = instance(), instance()
    first.claim()
    second.claim()
    first.table.refresh()
    with pytest.raises(Fenced, match=second.identity.instance):
        first.claim(last_owned=1)
    second.run_epoch({ALL: 1000})
    again = instance()  # a new start is another matter
    again.claim()
    assert again.position == {ALL: 1000}


def test_an_instance_that_retries_goes_on_where_it_was(instance):
    sink = instance()
    sink.claim()
    sink.run_epoch({ALL: 10})
    sink.claim(last_owned=1)
    assert (sink.generation, sink.position) == (2, {ALL: 10})


def test_a_claim_succeeds_on_a_table_that_others_write_all_the_time(instance, monkeypatch):
    sink = instance()
    resolve = sink.source.resolve

    def slowly(known):
        rows = pa.table({"n": pa.array([5000], pa.int64())}, schema=sink.format.schema)
        write_deltalake(sink.table_uri, rows, mode="append")
        return resolve(known)

    monkeypatch.setattr(sink.source, "resolve", slowly)
    sink.claim()
    assert sink.generation == 1


def test_dead_letters_that_another_instance_landed_are_not_waited_for(instance):
    sink = instance()
    sink.claim()
    sink.run_epoch({ALL: 100})
    waited = []
    dead_letters.land(sink.table, sink.dead_letter_uri, sink.ids, 1, [], "another", waited.append)
    assert waited == []


def test_each_start_takes_the_next_generation(instance):
    for generation in (1, 2, 3):
        sink = instance()
        sink.claim()
        assert sink.progress.generation == generation
