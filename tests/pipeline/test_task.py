"""What a task does with events that are well-formed and still cannot be stored."""

from __future__ import annotations

import pyarrow as pa

from rivermouth.formats.base import Decoded, Rejects
from rivermouth.pipeline.task import set_aside


def test_events_with_an_unfit_partition_value_join_the_rejects_in_order():
    events = pa.record_batch({"p": ["a", "", None, ""], "n": [0, 2, 3, 5]})
    decoded = Decoded(events, pa.array([0, 2, 3, 5]), Rejects([1, 4], ["InvalidJson"] * 2, ["x", "y"]))
    done = set_aside(decoded, 6, ("p",))
    assert done.events.to_pydict() == {"p": ["a", None], "n": [0, 3]}
    assert done.kept.to_pylist() == [0, 3]
    assert done.rejects.rows == [1, 2, 4, 5]
    assert done.rejects.reasons == ["InvalidJson", "WrongType", "InvalidJson", "WrongType"]
    assert "p: an empty string" in done.rejects.messages[1]


def test_fit_events_are_left_as_they_are():
    decoded = Decoded(pa.record_batch({"p": ["a", None], "n": [0, 1]}), None, Rejects())
    assert set_aside(decoded, 2, ("p",)) is decoded
    assert set_aside(decoded, 2, ()) is decoded


def test_an_empty_partition_value_is_a_dead_letter_and_stops_nothing(lake, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.ndjson").write_text('{"p": "a", "n": 1}\n{"p": "", "n": 2}\n{"p": null, "n": 3}\n')
    source = {"connector": "files", "config": {"path": str(tmp_path / "in"), "rest_interval": "0s"}}
    lake.run(source, {"t": {"schema": "p STRING, n INT", "partition_columns": ["p"]}})
    assert lake.query("SELECT p, n FROM {t} ORDER BY n") == [("a", 1), (None, 3)]
    assert lake.query("SELECT reason, value FROM {t_dead_letters}") == [("WrongType", b'{"p": "", "n": 2}')]
