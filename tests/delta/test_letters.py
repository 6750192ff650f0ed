"""Dead letters are found by whose they are, why, where and when, however many others there are."""

from __future__ import annotations

import subprocess
import sys
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from rivermouth.delta.dead_letters import RECORDS_LOST, SCHEMA
from rivermouth.delta.letters import Filter, count, newest
from rivermouth.errors import DeltaWriterFailed

MINE = Filter("p", ("s",))
NOON = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
LATER = datetime(2026, 1, 1, 18, tzinfo=timezone.utc)
ODD = 1_767_225_600_000_000_000  # a year that Python does not know, in microseconds


def letter(offset: int, **more: Any) -> dict[str, Any]:
    return {
        "key": b"k",
        "value": b"v%d" % offset,
        "topic": "t",
        "partition": 0,
        "offset": offset,
        "timestamp": NOON,
        "headers": [],
        "reason": "InvalidJson",
        "message": "bad",
        "pipeline": "p",
        "sink": "s",
        "epoch": 1,
        "day": date(2026, 1, 2),
        "replayed": None,
        **more,
    }


def store(uri: Path, *letters: dict[str, Any]) -> None:
    write_deltalake(
        str(uri), pa.Table.from_pylist(list(letters), SCHEMA), partition_by=["day"], mode="append"
    )


@pytest.fixture
def uri(tmp_path: Path) -> Path:
    return tmp_path / "letters"


def offsets(uri: Path, wanted: Filter = MINE, limit: int = 100) -> list[int]:
    return [found["offset"] for found in newest([str(uri)], wanted, limit)]


def test_letters_are_counted_by_sink_reason_and_topic(uri):
    store(uri, letter(0), letter(1, timestamp=LATER, day=date(2026, 1, 3)), letter(2, reason="WrongType"))
    store(uri, letter(3, topic="u"), letter(4, sink="other"), letter(5, pipeline="other"))
    groups = count([str(uri)], MINE)
    assert [(g.reason, g.topic, g.total) for g in groups] == [
        ("InvalidJson", "t", 2),
        ("InvalidJson", "u", 1),
        ("WrongType", "t", 1),
    ]
    first = groups[0]
    assert (first.first_time, first.last_time) == (NOON.timestamp() * 1e6, LATER.timestamp() * 1e6)
    assert (first.first_day, first.last_day) == (date(2026, 1, 2), date(2026, 1, 3))
    both = count([str(uri), f"{uri}/"], Filter("p", ("s", "other")))  # one table, spelled twice
    assert sum(group.total for group in both) == 5


def test_replayed_letters_are_left_out_unless_asked_for(uri):
    store(uri, letter(0), letter(1, replayed=LATER))
    assert [(g.total, g.replayed) for g in count([str(uri)], MINE)] == [(1, 0)]
    everything = Filter("p", ("s",), replayed=True)
    assert [(g.total, g.replayed) for g in count([str(uri)], everything)] == [(2, 1)]
    assert offsets(uri) == [0]
    assert sorted(offsets(uri, everything)) == [0, 1]


def test_the_newest_come_first_from_several_tables(uri, tmp_path):
    store(uri, letter(0), letter(1, timestamp=LATER), letter(2, day=date(2026, 1, 1), timestamp=LATER))
    other = tmp_path / "other"
    store(other, letter(3, sink="o", timestamp=datetime(2026, 1, 1, 15, tzinfo=timezone.utc)))
    store(other, letter(4, sink="o", day=date(2026, 1, 3)), letter(5, sink="o", timestamp=None))
    both = [str(uri), str(other)]
    found = [one["offset"] for one in newest(both, Filter("p", ("s", "o")), 10)]
    assert found == [4, 5, 1, 3, 0, 2]  # by day; without a time first; then by time
    assert [one["offset"] for one in newest(both, Filter("p", ("s", "o")), 3)] == [4, 5, 1]


def test_letters_come_back_whole(uri):
    kept = letter(7, value=b"\xff\x00", key=None, headers=[{"key": "file", "value": b"a"}, {"key": "n"}])
    store(uri, kept)
    (found,) = newest([str(uri)], MINE, 10)
    noon = int(NOON.timestamp() * 1e6)
    assert found == {
        **kept,
        "timestamp": noon,
        "headers": [{"key": "file", "value": b"a"}, {"key": "n", "value": None}],
    }


def test_two_letters_of_one_place_are_both_shown(uri):
    """Files of one folder share their topic, and lines of them may share offset and time."""
    store(uri, letter(0, value=b"a"), letter(0, value=b"b"), letter(1))
    assert [one["value"] for one in newest([str(uri)], MINE, 10)] in (
        [b"v1", b"a", b"b"],
        [b"v1", b"b", b"a"],
    )
    assert len(newest([str(uri)], MINE, 2)) == 2


def test_older_days_are_not_read_once_there_are_enough(uri):
    store(uri, letter(0, day=date(2026, 1, 1)))
    store(uri, letter(1), letter(2))
    (old,) = uri.glob("day=2026-01-01/*.parquet")
    old.unlink()
    assert sorted(offsets(uri, limit=2)) == [1, 2]
    with pytest.raises(FileNotFoundError):
        offsets(uri, limit=3)


FILTERS = {
    "reasons": (Filter("p", ("s",), reasons=("WrongType", RECORDS_LOST)), [1, 3, 4]),
    "topics": (Filter("p", ("s",), topics=("u's \\ own",)), [2]),
    "since": (Filter("p", ("s",), since=LATER), [1, 3, 4, 5]),
    "since a day": (Filter("p", ("s",), since=datetime(2026, 1, 2, 23, tzinfo=timezone.utc)), [3, 4, 5]),
    "until": (Filter("p", ("s",), until=LATER), [0, 2]),
    "until in the day": (
        Filter("p", ("s",), until=datetime(2026, 1, 2, 1, tzinfo=timezone.utc)),
        [0, 1, 2, 3],
    ),
    "until midnight": (Filter("p", ("s",), until=datetime(2026, 1, 2, tzinfo=timezone.utc)), [0, 1, 2]),
    "both": (
        Filter("p", ("s",), since=NOON, until=datetime(2026, 1, 1, 12, 0, 1, tzinfo=timezone.utc)),
        [0, 2],
    ),
    "the first moment": (
        Filter("p", ("s",), until=datetime.min.replace(tzinfo=timezone.utc)),
        [],
    ),
}


@pytest.fixture
def mixed(uri):
    gap = {"reason": RECORDS_LOST, "timestamp": None, "value": None, "key": None}
    store(
        uri,
        letter(0),
        letter(1, timestamp=LATER, reason="WrongType"),
        letter(2, topic="u's \\ own"),
        letter(3, **gap),
        letter(4, day=date(2026, 1, 3), **gap),
        letter(5, timestamp=pa.scalar(ODD, pa.timestamp("us", tz="UTC"))),
    )
    return uri


@pytest.mark.parametrize("name", FILTERS)
def test_filters(mixed, name):
    wanted, expected = FILTERS[name]
    assert sorted(offsets(mixed, wanted)) == expected
    assert sum(group.total for group in count([str(mixed)], wanted)) == len(expected)


def test_spark_understands_a_filter_in_the_same_way(mixed, spark):
    letters = spark.read.format("delta").load(str(mixed))
    for name, (wanted, expected) in FILTERS.items():
        found = letters.where(wanted.sql()).select("offset").collect()
        assert sorted(row[0] for row in found) == expected, name


def test_a_time_in_a_year_that_python_does_not_know(mixed):
    assert [one["timestamp"] for one in newest([str(mixed)], MINE, 100) if one["offset"] == 5] == [ODD]
    assert max(group.last_time or 0 for group in count([str(mixed)], MINE)) == ODD


def test_a_table_from_before_there_were_replays(uri):
    before = pa.Table.from_pylist([letter(0)], SCHEMA).drop(["replayed"])
    write_deltalake(str(uri), before, partition_by=["day"])
    (found,) = newest([str(uri)], MINE, 10)
    assert found["replayed"] is None
    assert [(g.total, g.replayed) for g in count([str(uri)], MINE)] == [(1, 0)]


def test_no_table_has_no_letters_and_is_not_made(uri):
    assert (newest([str(uri)], MINE, 10), count([str(uri)], MINE)) == ([], [])
    assert not uri.exists()


def test_a_table_that_cannot_be_opened_is_told(uri):
    store(uri, letter(0))
    (uri / "_delta_log" / f"{0:020d}.json").write_text("{")
    with pytest.raises(DeltaWriterFailed, match="letters cannot be opened"):
        count([str(uri)], MINE)


MEASURED = """
import sys
import pyarrow as pa
from rivermouth.delta.letters import Filter, count, newest
(group,) = count([sys.argv[1]], Filter("p", ("s",)))
found = newest([sys.argv[1]], Filter("p", ("s",)), 10)
print(group.total, len(found), pa.default_memory_pool().max_memory())
"""


def test_memory_does_not_grow_with_the_letters(uri):
    value = bytes(range(256)) * 400  # 100 kB
    for start in range(0, 2000, 100):
        store(uri, *(letter(n, value=b"%d" % n + value) for n in range(start, start + 100)))
    assert DeltaTable(str(uri)).count() == 2000  # 200 MB
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(uri)], capture_output=True, text=True, timeout=60, check=True
    )
    total, shown, most = map(int, done.stdout.split())
    assert (total, shown) == (2000, 10)
    assert most < 64 << 20, f"{most >> 20} MB"
