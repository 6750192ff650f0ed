"""The `envelope` format: the fixed four columns of the Rivven document."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rivermouth.formats import create
from tests.formats.records import MOMENT, Headers, batch

ENVELOPE = create("envelope")


def types(values: list[bytes | None], headers: list[Headers | None] | None = None) -> list[str]:
    records = batch(values, [b"k"] * len(values), headers)
    events = [ENVELOPE.decode(records, careful=careful).events for careful in (False, True)]
    assert events[0].equals(events[1])
    return [row["event_type"] for row in events[0].to_pylist()]


def test_the_four_columns() -> None:
    text = ' {"id": 1,  "name": "Alice"}\n'
    decoded = ENVELOPE.decode(batch([text.encode()]))
    assert decoded.events.to_pylist() == [
        {"data": text, "event_type": "insert", "timestamp": MOMENT, "stream": "orders"}
    ]
    assert ENVELOPE.schema.field("stream").nullable
    assert not any(ENVELOPE.schema.field(name).nullable for name in ("data", "event_type", "timestamp"))


@pytest.mark.parametrize("value", [b"1", b"[1, 2]", b'"x"', b"null", b"-1.5e10", b'{"a": "\\ud800"}'])
def test_any_json_value_is_kept_as_it_is_written(value: bytes) -> None:
    for careful in (False, True):
        decoded = ENVELOPE.decode(batch([value]), careful=careful)
        assert decoded.events.column("data").to_pylist() == [value.decode()]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "InvalidJson"),
        (b"  ", "InvalidJson"),
        (b'{"a": 1', "InvalidJson"),
        (b"{} {}", "InvalidJson"),
        (b"NaN", "InvalidJson"),
        (b'{"a": Infinity}', "InvalidJson"),
        (b'{"a": 01}', "InvalidJson"),
        (b'{"a": 1,}', "InvalidJson"),
        (b"plain text", "InvalidJson"),
        (b"\xef\xbb\xbf{}", "InvalidJson"),
        (b'{"a": "\x00"}', "InvalidJson"),
        (b'{"a": "\xff"}', "InvalidEncoding"),
    ],
)
def test_what_is_not_json_is_rejected(value: bytes, reason: str) -> None:
    for careful in (False, True):
        decoded = ENVELOPE.decode(batch([b"{}", value, b"{}"]), careful=careful)
        assert decoded.rejects.rows == [1] and decoded.rejects.reasons == [reason]
        assert decoded.kept is not None and decoded.kept.to_pylist() == [0, 2]


def test_a_tombstone_is_a_delete_with_the_key_as_data() -> None:
    headers: list[Headers | None] = [[("event_type", b"state")], None, None, None]
    decoded = ENVELOPE.decode(batch([None, None, None, b"{}"], [b"user-1", None, b"\xff", None], headers))
    assert [(row["data"], row["event_type"]) for row in decoded.events.to_pylist()] == [
        ("user-1", "delete"),
        ("{}", "insert"),
    ]
    assert decoded.rejects.rows == [1, 2]
    assert decoded.rejects.reasons == ["NullValue", "InvalidEncoding"]


def test_the_last_header_of_the_name_gives_the_type() -> None:
    headers: list[Headers | None] = [
        None,
        [],
        [("other", b"x")],
        [("event_type", b"log")],
        [("event_type", b"log"), ("event_type", b"state"), ("x", None)],
        [("event_type", b"")],
        [("event_type", None)],
        [("event_type", b"renamed")],
    ]
    expected = ["insert", "insert", "insert", "log", "state", "insert", "insert", "renamed"]
    assert types([b"{}"] * len(headers), headers) == expected


def test_a_header_that_is_not_text_rejects_its_record_only() -> None:
    headers: list[Headers | None] = [[("event_type", b"\xff")], [("event_type", b"update")], None]
    decoded = ENVELOPE.decode(batch([b"{}"] * 3, headers=headers))
    assert decoded.rejects.rows == [0] and decoded.rejects.reasons == ["InvalidEncoding"]
    assert decoded.events.column("event_type").to_pylist() == ["update", "insert"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"op": "c"}, "insert"),
        ({"op": "r"}, "insert"),
        ({"op": "u"}, "update"),
        ({"op": "d"}, "delete"),
        ({"op": "t"}, "insert"),
        ({"op": 1}, "insert"),
        ({"schema": {}, "payload": {"before": None, "after": {}, "op": "u"}}, "update"),
        ({"payload": {"op": "d"}, "op": None}, "delete"),
        ({"payload": "op"}, "insert"),
        ({"after": {"op": "d"}}, "insert"),
        (["op"], "insert"),
        ("op", "insert"),
    ],
)
def test_a_debezium_op_gives_the_type(value: object, expected: str) -> None:
    assert types([json.dumps(value).encode()]) == [expected]


def test_a_header_goes_before_an_op() -> None:
    value, header = b'{"op": "d"}', ("event_type", b"update")
    assert types([value, value], [[header], None]) == ["update", "delete"]


def test_a_deep_change_is_read_too() -> None:
    deep = b'{"before": ' + b"[" * 3000 + b"]" * 3000 + b', "op": "u"}'
    assert types([deep]) == ["update"]


def test_a_slice_of_a_batch() -> None:
    headers: list[Headers | None] = [[("event_type", f"t{row}".encode())] * (row % 3) for row in range(10)]
    values = [b"{}" if row != 6 else b"{" for row in range(10)]
    decoded = ENVELOPE.decode(batch(values, headers=headers).slice(2, 7))
    assert decoded.events.column("event_type").to_pylist() == ["t2", "insert", "t4", "t5", "t7", "t8"]
    assert decoded.rejects.rows == [4]


JSON_LIKE = st.text('{}[]",:1eE.-+ntul\\u0a', max_size=12).map(str.encode)


@given(st.lists(st.binary(max_size=12) | JSON_LIKE, max_size=8))
def test_both_ways_agree(values: list[bytes]) -> None:
    fast, careful = (ENVELOPE.decode(batch(values), careful=careful) for careful in (False, True))
    assert fast.events.equals(careful.events) and fast.rejects == careful.rejects
    for text in fast.events.column("data").to_pylist():
        json.loads(text, parse_constant=pytest.fail)


def test_a_record_without_a_timestamp_is_rejected() -> None:
    records = batch([b"{}", b"{}"])
    place = records.schema.get_field_index("timestamp")
    times = pa.array([None, MOMENT], records.schema.field(place).type)
    decoded = ENVELOPE.decode(records.set_column(place, records.schema.field(place), times))
    assert decoded.rejects.rows == [0] and decoded.rejects.reasons == ["MissingField"]
