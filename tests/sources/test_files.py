"""Folders that grow: what is taken, when, and that it is taken once."""

from __future__ import annotations

import gzip
import os
import shutil
import time
from types import SimpleNamespace

import pytest

from rivermouth.errors import ProgressLost, SourceUnavailable
from rivermouth.records import Partition
from rivermouth.sources import files as files_module
from rivermouth.sources.base import Scope
from rivermouth.sources.files import File, Files, FilesConfig, Manifests, _pack
from rivermouth.spark.engine import Engine

ALL = Partition("files", 0)
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


@pytest.fixture
def source(tmp_path, inbox, spark):
    """Opens the source for one sink, as often as it is called."""

    def opened(path=inbox, warn=lambda code, message: None, **more) -> Files:
        scope = Scope("p", "s", str(tmp_path / "t"), max_batch_size=1, warn=warn)
        return Files(FilesConfig(path=str(path), **more), scope, Engine(spark))

    return opened


def head(source: Files) -> int:
    (bounds,) = source.bounds({ALL: 0}).values()
    return bounds.head


def taken(source: Files, end: int) -> list[str]:
    rows = source.read({ALL: 0}, {ALL: end}).select("value").collect()
    return sorted(bytes(row.value).decode() for row in rows)


def test_a_file_rests_also_when_the_clocks_disagree(source, inbox):
    opened = source(rest_interval="0s")
    drop(inbox / "a.ndjson", numbers(0, 1), age=-3600)  # from the future
    opened.resolve({})
    assert head(opened) == 0
    opened.resolve({})
    assert head(opened) == 1


def test_progress_without_its_manifests_stops_the_sink(lake, inbox, statuses):
    drop(inbox / "a.ndjson", numbers(0, 10))
    lake.run(files(inbox), {"t": SCHEMA})
    shutil.rmtree(lake.folder / "t" / "_rivermouth")  # as a copy without such folders has it
    drop(inbox / "b.ndjson", numbers(10, 20))
    seen = statuses(lake.run(files(inbox), {"t": SCHEMA}))["t"]
    assert (seen.phase, seen.last_error.code) == ("failed", "ProgressLost")
    assert "restore that folder" in seen.last_error.message
    assert lake.query("SELECT count(*) FROM {t}") == [(10,)]


def test_a_gap_among_the_manifests_is_lost_progress(source, tmp_path):
    opened = source()
    for name in "abc":
        assert opened.manifests.add([File(name, 1, 1.0)])
    assert source().resolve({ALL: 3}) == {ALL: 3}
    opened.manifests.folder.joinpath(f"{1:020d}.json").unlink()
    with pytest.raises(ProgressLost):
        source().resolve({ALL: 3})


@pytest.mark.parametrize("pattern", ["", "**", "**/*", "*/*", "*/*/*"])
def test_folders_set_aside_are_left_alone_below_the_one_that_is_named(source, tmp_path, pattern):
    root = tmp_path / "_in"  # named by the user, so it is read
    drop(root / "x" / "y" / "a.txt", "yes\n")
    drop(root / "x" / "b.txt", "yes\n")
    for name in ("_temporary/0", "_delta_log", "x/_rivermouth", "x/.staging", "_SUCCESS"):
        drop(root / name / "c.txt", "no\n")
    opened = source(root / pattern)
    opened.resolve({})
    assert taken(opened, head(opened)) == ["yes"] * {"*/*": 1, "*/*/*": 1}.get(pattern, 2)


def test_a_link_to_a_folder_above_is_not_followed_and_one_to_elsewhere_is(source, inbox, tmp_path):
    drop(inbox / "x" / "a.txt", "a\n")
    drop(tmp_path / "elsewhere" / "b.txt", "b\n")
    (inbox / "x" / "up").symlink_to(inbox)
    (inbox / "aside").symlink_to(tmp_path / "elsewhere")
    opened = source()
    opened.resolve({})
    assert taken(opened, head(opened)) == ["a", "b"]


def test_what_cannot_be_looked_at_is_told_and_the_rest_is_read(source, inbox):
    (inbox / "loop.txt").symlink_to(inbox / "loop.txt")
    drop(inbox / "a.txt", "a\n")
    told = []
    opened = source(warn=lambda code, message: told.append((code, message)))
    for _ in range(2):
        opened.resolve({})
        assert head(opened) == 1
    ((code, message),) = told
    assert code == "PathUnreadable"
    assert str(inbox / "loop.txt") in message


def test_names_need_not_be_text(lake, inbox):
    folder = inbox / os.fsdecode(b"caf\xe9")
    drop(folder / os.fsdecode(b"th\xe9.ndjson"), numbers(0, 3) + "{broken\n")
    sink = {**SCHEMA, "topics": ["caf\\xe9"]}
    for _ in range(2):  # the second time from what the manifest says
        lake.run(files(inbox), {"t": sink})
    assert lake.query("SELECT count(n), count(DISTINCT n) FROM {t}") == [(3, 3)]
    ((topic, headers),) = lake.query("SELECT topic, headers FROM {t_dead_letters}")
    assert topic == "caf\\xe9"
    assert headers[0]["value"] == os.fsencode(inbox) + b"/caf\xe9/th\xe9.ndjson"


def test_files_that_go_away_before_they_are_read_are_no_part_of_a_manifest(source, inbox):
    for name in "abc":
        drop(inbox / name, f"{name}" * 150 + "\n", age=60 - ord(name) % 10)
    opened = source()
    opened.resolve({})
    assert head(opened) == 3
    (inbox / "a").unlink()
    (inbox / "c").unlink()
    assert taken(opened, 1) == ["b" * 150]
    with pytest.raises(SourceUnavailable, match="went away"):
        opened.read({ALL: 1}, {ALL: 2})
    again = source()
    again.resolve({ALL: 1})
    assert head(again) == 1
    drop(inbox / "d", "d\n")
    again.resolve({ALL: 1})
    assert head(again) == 2
    assert taken(again, 2) == ["b" * 150, "d"]


def test_a_file_that_changes_before_it_is_read_waits_until_it_rests(source, inbox):
    drop(inbox / "a", "a" * 300 + "\n")
    drop(inbox / "b", "b" * 300 + "\n", age=50)
    opened = source()
    opened.resolve({})
    assert head(opened) == 2
    drop(inbox / "a", "longer\n", age=0)
    assert taken(opened, 1) == ["b" * 300]
    with pytest.raises(SourceUnavailable):
        opened.read({ALL: 1}, {ALL: 2})


def test_a_manifest_of_another_instance_is_no_file_twice(source, inbox):
    for name, age in (("a", 60), ("b", 50)):
        drop(inbox / name, name * 300 + "\n", age=age)
    mine, theirs = source(), source()
    for opened in (mine, theirs):
        opened.resolve({})
        assert head(opened) == 2
    theirs.read({ALL: 0}, {ALL: 1})
    mine.read({ALL: 0}, {ALL: 2})
    names = [os.path.basename(file.path) for files in mine.manifests.lists for file in files]
    assert names == ["a", "b"]


def test_looking_takes_a_tenth_of_the_time_at_most(source, inbox, monkeypatch):
    clock = SimpleNamespace(now=1000.0, time=time.time, monotonic_ns=time.monotonic_ns)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr(files_module, "time", clock)
    opened = source()
    listed = opened._list

    def slow(seconds: float):
        def look():
            clock.now += seconds
            return listed()

        return look

    opened.resolve({})
    assert head(opened) == 0
    drop(inbox / "a", "a" * 300 + "\n")
    clock.now += 0.9
    assert head(opened) == 0  # at most once a second
    monkeypatch.setattr(opened, "_list", slow(5.0))
    clock.now += 0.2
    assert head(opened) == 1
    drop(inbox / "b", "b" * 300 + "\n")
    clock.now += 49
    assert head(opened) == 1
    clock.now += 2
    assert head(opened) == 2
    drop(inbox / "c", "c" * 300 + "\n")
    opened.resolve({})
    assert head(opened) == 3  # a claim always looks
