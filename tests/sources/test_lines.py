"""Lines become records without Spark: places, splits, blank lines, damage."""

from __future__ import annotations

import errno
import gzip
import os
import resource
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rivermouth.records import RECORD_SCHEMA
from rivermouth.sources import lines


def read(path: Path, begin: int = 0, stop: int = lines.TO_THE_END, size: int | None = None):
    size = path.stat().st_size if size is None else size
    rows = []
    for batch in lines.records(os.fsencode(path), "shop", 1_700_000_000.0, size, begin, stop):
        assert batch.schema == RECORD_SCHEMA
        rows += batch.to_pylist()
    return rows


def values(rows):
    return [row["value"] for row in rows]


def test_a_line_is_a_record_at_its_byte(tmp_path):
    path = tmp_path / "a.ndjson"
    path.write_bytes(b'{"a":1}\n{"a":22}\n\n{"a":3}')
    rows = read(path)
    assert values(rows) == [b'{"a":1}', b'{"a":22}', b'{"a":3}']
    assert [row["offset"] for row in rows] == [0, 8, 18]
    assert rows[0]["topic"] == "shop"
    assert rows[0]["headers"] == [{"key": "file", "value": str(path).encode()}]


def test_windows_line_ends_and_a_byte_order_mark_are_not_part_of_the_value(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    assert values(read(path)) == [b"one", b"two"]


def test_a_gzipped_file_reads_like_the_plain_one(tmp_path):
    path = tmp_path / "a.ndjson.gz"
    path.write_bytes(gzip.compress(b"one\ntwo\n"))
    assert values(read(path)) == [b"one", b"two"]


def test_a_damaged_gzip_gives_its_good_lines_and_one_record_that_says_so(tmp_path):
    path = tmp_path / "a.gz"
    whole = gzip.compress(b"".join(b"line %d\n" % n for n in range(1_000_000)))
    path.write_bytes(whole[: len(whole) - 1000])
    rows = read(path)
    assert values(rows)[0] == b"line 0"
    assert rows[-1]["value"] is None
    assert [h["key"] for h in rows[-1]["headers"]] == ["file", "error"]


def test_a_missing_file_is_one_record_that_says_so(tmp_path):
    rows = read(tmp_path / "gone.txt", size=10)
    assert values(rows) == [None]
    assert b"gone.txt" in rows[0]["headers"][1]["value"]


def test_a_link_that_leads_nowhere_is_a_fault_and_no_record(tmp_path):
    path = tmp_path / "a.txt"
    path.symlink_to(path)
    with pytest.raises(OSError) as raised:
        read(path, size=10)
    assert raised.value.errno == errno.ELOOP


def test_too_many_open_files_are_a_fault_and_no_record(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"one\n"))
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        with pytest.raises(OSError) as raised:
            read(path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert raised.value.errno == errno.EMFILE
    assert values(read(path)) == [b"one"]


@pytest.mark.parametrize("name", [b"caf\xe9.txt", b"caf\xe9.gz"])
def test_a_file_name_need_not_be_text(tmp_path, name):
    path = tmp_path / os.fsdecode(name)
    path.write_bytes(gzip.compress(b"one\n") if name.endswith(b".gz") else b"one\n")
    (row,) = read(path)
    assert row["value"] == b"one"
    assert row["headers"] == [{"key": "file", "value": os.fsencode(tmp_path) + b"/" + name}]
    path.unlink()
    (row,) = read(path, size=4)
    assert row["value"] is None
    assert row["headers"][0]["value"].endswith(name)


def test_what_came_after_the_file_was_taken_is_not_read(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\ntwo\nthree\n")
    assert values(read(path, size=8)) == [b"one", b"two"]


def test_an_empty_file_has_no_records(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"")
    assert read(path) == []
    assert lines.splits(str(path), 0) == []


@given(
    content=st.lists(
        st.binary(max_size=12).map(lambda b: b.replace(b"\n", b"").replace(b"\r", b"")), max_size=20
    ),
    cuts=st.lists(st.integers(0, 260), max_size=4),
    block=st.integers(1, 40),
    newline_at_end=st.booleans(),
)
def test_every_line_stands_in_exactly_one_split(tmp_path_factory, content, cuts, block, newline_at_end):
    path = tmp_path_factory.mktemp("lines") / "a.txt"
    text = b"\n".join(content) + (b"\n" if newline_at_end else b"")
    if text.startswith(b"\xef\xbb\xbf"):
        text = b"x" + text
    path.write_bytes(text)
    edges = sorted({0, len(text), *(c for c in cuts if c < len(text))})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK_BYTES", block)
        parts = [row for begin, stop in pairwise(edges) for row in read(path, begin, stop)]
    expected = [line for line in text.split(b"\n") if line]
    assert values(parts) == expected
    for row in parts:
        assert text[row["offset"] :].startswith(row["value"])


@pytest.mark.parametrize(("begin", "stop"), [(0, 24), (0, 16), (16, 24)])
def test_a_file_that_was_cut_after_it_was_taken_says_so(tmp_path, begin, stop):
    path = tmp_path / "a.ndjson"
    path.write_bytes(b'{"a":1}\n')
    *good, told = read(path, begin, stop, size=24)
    assert values(good) == ([b'{"a":1}'] if begin == 0 else [])
    assert told["value"] is None
    assert b"when it was taken it had 24" in told["headers"][1]["value"]
