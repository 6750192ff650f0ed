"""Folders that grow: what is taken, when, and that it is taken once."""

from __future__ import annotations

import gzip
import os
import time

import pytest

from rivermouth.sources.base import Scope
from rivermouth.sources.files import File, Files, FilesConfig, Manifests, _pack

SCHEMA = {"schema": "n BIGINT NOT NULL"}


@pytest.fixture
def inbox(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    return folder


def files(path, **more):
    return {"connector": "files", "config": {"path": str(path), **more}}


def drop(place, text: bytes | str, *, age: float = 60) -> None:
    """Put a file there, as old as that."""
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(text.encode() if isinstance(text, str) else text)
    os.utime(place, (time.time() - age, time.time() - age))


def numbers(start: int, end: int) -> str:
    return "".join(f'{{"n": {n}}}\n' for n in range(start, end))


def test_files_land_once_and_new_ones_are_picked_up(lake, inbox):
    drop(inbox / "a.ndjson", numbers(0, 100))
    drop(inbox / "b.ndjson.gz", gzip.compress(numbers(100, 200).encode()))
    lake.run(files(inbox), {"t": SCHEMA})
    assert lake.query("SELECT count(n), count(DISTINCT n) FROM {t}") == [(200, 200)]
    drop(inbox / "c.ndjson", numbers(200, 250))
    lake.run(files(inbox), {"t": SCHEMA})
    lake.run(files(inbox), {"t": SCHEMA})
    assert lake.query("SELECT count(n), count(DISTINCT n), max(n) FROM {t}") == [(250, 250, 249)]


def test_a_file_still_being_written_is_left_until_it_rests(lake, inbox):
    drop(inbox / "done.ndjson", numbers(0, 10))
    drop(inbox / "growing.ndjson", numbers(10, 20), age=0)
    for name in ("upload.tmp", ".hidden", "_started"):
        drop(inbox / name, numbers(99, 100))
    source = files(inbox, rest_interval="1h")
    lake.run(files(inbox, rest_interval="30s"), {"t": SCHEMA})
    assert lake.query("SELECT max(n) FROM {t}") == [(9,)]
    drop(inbox / "growing.ndjson", numbers(10, 25), age=7200)
    lake.run(source, {"t": SCHEMA})
    assert lake.query("SELECT count(n), max(n) FROM {t}") == [(25, 24)]


def test_the_topic_is_the_folder_and_a_sink_takes_its_own(lake, inbox):
    drop(inbox / "orders" / "1.ndjson", numbers(0, 10))
    drop(inbox / "clicks" / "1.ndjson", numbers(10, 30))
    sinks = {"orders": {**SCHEMA, "topics": ["orders"]}, "all": {"schema_type": "envelope"}}
    lake.run(files(inbox), sinks)
    assert lake.query("SELECT count(*), max(n) FROM {orders}") == [(10, 9)]
    assert lake.query("SELECT stream, count(*) FROM {all} GROUP BY 1 ORDER BY 1") == [
        ("clicks", 20),
        ("orders", 10),
    ]
    # A topic added to the sink later brings its files, also the old ones, and nothing twice.
    lake.run(files(inbox), {"orders": {**SCHEMA, "topics": ["orders", "clicks"]}})
    assert lake.query("SELECT count(n), count(DISTINCT n) FROM {orders}") == [(30, 30)]


def test_a_glob_and_a_fixed_topic(lake, inbox):
    drop(inbox / "x" / "a.ndjson", numbers(0, 10))
    drop(inbox / "x" / "a.csv", "1,2,3\n")
    lake.run(
        files(inbox / "*" / "*.ndjson", topic="shop"), {"t": {"schema_type": "envelope", "topics": ["shop"]}}
    )
    assert lake.query("SELECT DISTINCT stream, count(*) FROM {t} GROUP BY 1") == [("shop", 10)]


def test_text_lines(lake, inbox):
    drop(inbox / "log.txt", "first\r\n\r\nsecond\n")
    lake.run(files(inbox), {"t": {"schema_type": "string"}})
    assert lake.query("SELECT data FROM {t} ORDER BY data") == [("first",), ("second",)]


def test_a_dead_letter_names_its_file_and_place(lake, inbox):
    drop(inbox / "a.ndjson", numbers(0, 3) + "{broken\n" + numbers(3, 5))
    whole = gzip.compress(numbers(5, 50_000).encode())
    drop(inbox / "cut.ndjson.gz", whole[:-100])
    lake.run(files(inbox), {"t": SCHEMA})
    rows = lake.query('SELECT headers, "offset", reason, value FROM {t_dead_letters} ORDER BY reason')
    (broken, at, reason, value), (cut, _, cut_reason, _) = rows
    assert (broken[0]["key"], broken[0]["value"]) == ("file", str(inbox / "a.ndjson").encode())
    assert (at, reason, value) == (27, "InvalidJson", b"{broken")
    assert (cut_reason, cut[0]["value"]) == ("NullValue", str(inbox / "cut.ndjson.gz").encode())
    assert cut[1]["key"] == "error"


def test_latest_leaves_what_is_there_at_the_first_start(lake, inbox):
    drop(inbox / "old.ndjson", numbers(0, 10))
    source = files(inbox, starting_offsets="latest")
    lake.run(source, {"t": SCHEMA})
    drop(inbox / "new.ndjson", numbers(10, 15))
    lake.run(source, {"t": SCHEMA})
    assert lake.query("SELECT min(n), count(*) FROM {t}") == [(10, 5)]


def test_a_file_that_changes_after_it_was_taken_is_told(lake, inbox, statuses):
    drop(inbox / "a.ndjson", numbers(0, 10))
    lake.run(files(inbox), {"t": SCHEMA})
    drop(inbox / "a.ndjson", numbers(0, 12), age=30)
    seen = statuses(lake.run(files(inbox), {"t": SCHEMA}))["t"]
    assert seen.warnings == {"FileChanged": 1}
    assert lake.query("SELECT count(*) FROM {t}") == [(10,)]


def test_a_backlog_is_cut_into_epochs_of_whole_files(lake, inbox, statuses):
    for n in range(4):
        drop(inbox / f"{n}.ndjson", numbers(n * 100, n * 100 + 100), age=60 - n)
    seen = statuses(lake.run(files(inbox), {"t": {**SCHEMA, "batch_size": 5, "max_batch_size": 12}}))["t"]
    assert seen.commits == 2  # two files of 1,100 bytes are about twelve records of 200
    assert lake.query("SELECT count(n), count(DISTINCT n) FROM {t}") == [(400, 400)]


def test_a_missing_folder_is_an_error_that_says_so(lake, inbox, statuses):
    seen = statuses(lake.run(files(inbox / "none"), {"t": SCHEMA}))["t"]
    assert (seen.phase, seen.last_error.code) == ("failed", "SourceInvalid")


def test_two_instances_cannot_both_write_a_manifest(tmp_path):
    mine, theirs = Manifests(tmp_path / "m"), Manifests(tmp_path / "m")
    assert mine.add([File("a", 1, 1.0)])
    assert not theirs.add([File("b", 1, 1.0)])
    theirs.load()
    assert theirs.lists == mine.lists == [[File("a", 1, 1.0)]]


def test_files_are_packed_oldest_first_and_at_least_one():
    a, b, c = File("a", 10, 3.0), File("b", 10, 1.0), File("c", 100, 2.0)
    assert _pack([a, b, c], 20) == [[b], [c], [a]]
    assert _pack([a, b], 20) == [[b, a]]
    assert _pack([], 20) == []


def test_a_file_rests_also_when_the_clocks_disagree(tmp_path, inbox, spark):
    source = Files(
        FilesConfig(path=str(inbox), rest_interval="0s"), Scope("p", "s", str(tmp_path / "t")), spark
    )
    drop(inbox / "a.ndjson", numbers(0, 1), age=-3600)  # from the future
    start = source.resolve({})
    assert source.bounds(start)[next(iter(start))].head == 0
    assert source.bounds(start)[next(iter(start))].head == 1
