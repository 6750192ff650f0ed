"""The `json` format: every value fits exactly, or the record is rejected with a reason."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from rivermouth.config.types import parse_schema
from rivermouth.formats import create
from rivermouth.formats.base import Decoded
from tests.formats.records import batch


def decode(ddl: str, values: list[bytes | None]) -> Decoded:
    """Decode both ways, which must agree to the last message."""
    format_ = create("json", parse_schema(ddl))
    careful = format_.decode(batch(values), careful=True)
    for _ in range(2):  # a format remembers what it saw; the second time takes other ways
        fast = format_.decode(batch(values))
        assert fast.events.equals(careful.events)
        assert fast.rejects == careful.rejects
        assert (fast.kept is None) == (len(fast.rejects) == 0)
        assert fast.kept is None or fast.kept.to_pylist() == careful.kept.to_pylist()
        assert fast.events.schema.equals(format_.schema, check_metadata=True)
        fast.events.validate(full=True)
    return careful


def one(type_: str, text: str) -> Any:
    """The value of a column `v`, or the reject's reason and message."""
    decoded = decode(f"v {type_}", [b'{"v": ' + text.encode() + b"}"])
    if len(decoded.rejects):
        return decoded.rejects.reasons[0], decoded.rejects.messages[0]
    return decoded.events.column("v")[0].as_py()


UTC = dt.timezone.utc
TIMESTAMP = "v: {} is not a timestamp, YYYY-MM-DDThh:mm:ss[.ffffff][Z or +hh:mm] (Timestamp)"


@pytest.mark.parametrize(
    ("type_", "text", "expected"),
    [
        ("string", '"é\\u0041\\n\\ud83d\\ude00\\u0000"', "éA\n😀\0"),
        ("string", "null", None),
        ("boolean", "true", True),
        ("int", "-2147483648", -(2**31)),
        ("int", "1.0", 1),
        ("int", "1e3", 1000),
        ("int", "-0", 0),
        ("tinyint", "127", 127),
        ("bigint", "9223372036854775807", 2**63 - 1),
        ("bigint", "9.223372036854775807e18", 2**63 - 1),
        ("UInt8", "255", 255),
        ("UInt64", "18446744073709551615", Decimal(2**64 - 1)),
        ("double", "0.1", 0.1),
        ("double", "1", 1.0),
        ("double", "1e-400", 0.0),
        ("double", "1234567890123456789012345678901234567890", 1.2345678901234568e39),
        ("float", "0.1", 0.10000000149011612),
        ("float", "1.00000005960464477539062500001", 1.0000001192092896),  # rounded once
        ("timestamp", '"2024-01-15T10:30:00Z"', dt.datetime(2024, 1, 15, 10, 30, tzinfo=UTC)),
        ("timestamp", '"2024-01-15T10:30:00.123456+01:30"', dt.datetime(2024, 1, 15, 9, 0, 0, 123456, UTC)),
        ("timestamp", '"2024-01-15 10:30:00.5"', dt.datetime(2024, 1, 15, 10, 30, 0, 500000, UTC)),
        ("timestamp", '"2024-01-15"', dt.datetime(2024, 1, 15, tzinfo=UTC)),
        ("timestamp", '"0001-01-01T00:00:00Z"', dt.datetime(1, 1, 1, tzinfo=UTC)),
        ("timestamp_ntz", '"2024-01-15T10:30"', dt.datetime(2024, 1, 15, 10, 30)),
        ("date", '"2024-02-29"', dt.date(2024, 2, 29)),
        ("date", '"9999-12-31"', dt.date(9999, 12, 31)),
        ("binary", '"AQID"', b"\x01\x02\x03"),
        ("binary", '""', b""),
        ("decimal(5,2)", "123.45", Decimal("123.45")),
        ("decimal(5,2)", '"123.450"', Decimal("123.45")),
        ("decimal(5,2)", "1e2", Decimal("100.00")),
        ("decimal(5,2)", "0e99", Decimal("0.00")),
        ("decimal(38,10)", "9" * 28 + ".0123456789", Decimal("9" * 28 + ".0123456789")),
        ("array<int>", "[1, null, 2.0]", [1, None, 2]),
        ("array<date>", '["2024-01-01"]', [dt.date(2024, 1, 1)]),
        ("struct<a: int, b: UInt8>", '{"a": 1, "b": 2, "c": []}', {"a": 1, "b": 2}),
        ("map<string, int>", '{"x": 1, "y": null}', [("x", 1), ("y", None)]),
        ("array<map<string, UInt8>>", '[{"x": 1}, {}, null]', [[("x", 1)], [], None]),
        ("struct<m: map<string, date>>", '{"m": {"x": "2024-01-01"}}', {"m": [("x", dt.date(2024, 1, 1))]}),
    ],
)
def test_a_value_that_fits(type_: str, text: str, expected: Any) -> None:
    assert one(type_, text) == expected


@pytest.mark.parametrize(
    ("type_", "text", "message"),
    [
        ("string", "1", "v: 1 is not a string (Utf8)"),
        ("string", "true", "v: true is not a string (Utf8)"),
        ("string", '"\\ud800"', 'v: "\\ud800" has half a surrogate pair (Utf8)'),
        ("boolean", '"yes"', 'v: "yes" is not true or false (Boolean)'),
        ("boolean", "1", "v: 1 is not true or false (Boolean)"),
        ("int", "1.5", "v: 1.5 is not an integer (Int32)"),
        ("int", '"abc"', 'v: "abc" is not an integer (Int32)'),
        ("int", '"1"', 'v: "1" is not an integer (Int32)'),
        ("int", "2147483648", "v: 2147483648 is out of range, -2147483648 to 2147483647 (Int32)"),
        ("int", "1e999999999", "v: 1e999999999 is out of range, -2147483648 to 2147483647 (Int32)"),
        ("int", "1e99999999999999999999", "v: 1e99999999999999999999 is out of range (Int32)"),
        ("int", "1e-999999999", "v: 1e-999999999 is not an integer (Int32)"),
        ("int", "[1]", "v: an array is not an integer (Int32)"),
        ("UInt8", "-1", "v: -1 is out of range, 0 to 255 (UInt8)"),
        ("UInt64", "18446744073709551616", "v: {} is out of range, 0 to 18446744073709551615 (UInt64)"),
        ("double", '"1.5"', 'v: "1.5" is not a number (Float64)'),
        ("double", "1e400", "v: 1e400 is out of range (Float64)"),
        ("double", "1" * 400, f"v: {'1' * 57}... is out of range (Float64)"),
        ("float", "1e39", "v: 1e39 is out of range (Float32)"),
        ("timestamp", "1700000000", TIMESTAMP),
        ("timestamp", '"2024-02-30"', 'v: "2024-02-30" is not a day of the calendar (Timestamp)'),
        ("timestamp", '"2024-01-15T24:00:00Z"', "v: {} is not a time of the day (Timestamp)"),
        ("timestamp", '"2024-01-15T10:00:00+24:00"', "v: {} has an offset out of range (Timestamp)"),
        ("timestamp", '"0000-01-01"', 'v: "0000-01-01" is not a day of the calendar (Timestamp)'),
        ("timestamp", '"9999-12-31T23:59:59-01:00"', "v: {} is not in the years 1 to 9999 (Timestamp)"),
        ("timestamp_ntz", '"2024-01-15T10:00:00Z"', "v: {} has an offset, the column none (timestamp_ntz)"),
        ("date", '"2024-1-1"', 'v: "2024-1-1" is not a date, YYYY-MM-DD (Date32)'),
        ("date", '"2023-02-29"', 'v: "2023-02-29" is not a day of the calendar (Date32)'),
        ("date", "19000", "v: 19000 is not a date, YYYY-MM-DD (Date32)"),
        ("binary", '"AQI"', 'v: "AQI" is not base64 (Binary)'),
        ("binary", '"AQJ="', 'v: "AQJ=" is not base64 (Binary)'),  # its last bits would be lost
        ("binary", '"A QID"', 'v: "A QID" is not base64 (Binary)'),
        ("decimal(5,2)", "1.234", "v: 1.234 has more than 2 decimal places (Decimal128(5,2))"),
        ("decimal(6,2)", "10000", "v: 10000 is out of range (Decimal128(6,2))"),
        ("decimal(38,10)", "1" + "0" * 30, f"v: 1{'0' * 30} is out of range (Decimal128(38,10))"),
        ("decimal(5,2)", '"NaN"', 'v: "NaN" is not a decimal number (Decimal128(5,2))'),
        ("array<int>", '[1, 2, "x"]', 'v[2]: "x" is not an integer (Int32)'),
        ("array<int>", "{}", "v: an object is not an array (array<int>)"),
        ("struct<a: array<struct<b: int>>>", '{"a": [{}, {"b": true}]}',
         "v.a[1].b: true is not an integer (Int32)"),
        ("struct<a: int>", "[]", "v: an array is not an object (struct<a: int>)"),
        ("map<string, int>", '{"x": 1, "y z": "2"}', 'v["y z"]: "2" is not an integer (Int32)'),
        ("map<string, int>", "[]", "v: an array is not an object (map<string, int>)"),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit(type_: str, text: str, message: str) -> None:
    assert one(type_, text) == ("WrongType", message.replace("{}", text))


def test_fraction_digits_beyond_the_sixth_are_refused_not_cut() -> None:
    assert one("timestamp", '"2024-01-15T10:30:00.1234560Z"')[0] == "WrongType"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "NullValue"),
        (b"", "InvalidJson"),
        (b" \n", "InvalidJson"),
        (b'{"id": "a"', "InvalidJson"),
        (b'{"id": "a', "InvalidJson"),
        (b'{"id": "a"} x', "InvalidJson"),
        (b'{"id": "a"}{"id": "b"}', "InvalidJson"),
        (b'{"id": "a"}\n{"id": "b"}', "InvalidJson"),
        (b'{"id": "a",}', "InvalidJson"),
        (b"{'id': 'a'}", "InvalidJson"),
        (b'{"id": "a", "x": NaN}', "InvalidJson"),
        (b'{"id": "a", "x": [-Infinity]}', "InvalidJson"),
        (b'{"id": "a", "x": 01}', "InvalidJson"),
        (b'{"id": "a\x00"}', "InvalidJson"),
        (b'{"id": "a"}\x00', "InvalidJson"),
        (b'\xef\xbb\xbf{"id": "a"}', "InvalidJson"),
        (b'{"id": "a\xff"}', "InvalidEncoding"),
        (b'{"id": "\xed\xa0\x80"}', "InvalidEncoding"),
        ('{"id": "a"}'.encode("utf-16"), "InvalidEncoding"),
        (b"null", "NotAnObject"),
        (b"[]", "NotAnObject"),
        (b'"x"', "NotAnObject"),
        (b"1", "NotAnObject"),
        (b'{"id": "a", "id": "a"}', "DuplicateKey"),
        (b'{"id": "a", "\\u0069d": "a"}', "DuplicateKey"),
        (b'{"id": "a", "n": null, "n": 1}', "DuplicateKey"),
        (b"{}", "MissingField"),
        (b'{"id": null}', "MissingField"),
        (b'{"ID": "a"}', "MissingField"),
        (b'{"id": 1}', "WrongType"),
    ],
)
def test_a_bad_record_among_good_ones(value: bytes | None, reason: str) -> None:
    decoded = decode("id string NOT NULL, n int", [b'{"id": "x", "n": 1}', value, b'{"id": "y"}'])
    assert decoded.rejects.rows == [1] and decoded.rejects.reasons == [reason]
    assert decoded.events.to_pylist() == [{"id": "x", "n": 1}, {"id": "y", "n": None}]


@pytest.mark.parametrize(
    "value",
    [
        b' \r\n\t{\n  "id":\n  "x",\r\n  "n": 1\n}\n\n',
        b'{"id": "x", "n": 1, "unknown": {"deep": [1, 2, {}]}, "unknown": 2}',
        b'{"n": 1, "id": "x"}',
        b'{"\\u0069d": "x", "n": 1}',
        b'{"id": "x", "n": 1, "note": "NaN, Infinity"}',
        b'{"id": "x", "n": 1, "big": 1e9999, "half": "\\ud800"}',
        b'{"id": "x", "n": 1, "deep": ' + b"[" * 20_000 + b"]" * 20_000 + b"}",
    ],
)
def test_a_good_record_in_another_dress(value: bytes) -> None:
    decoded = decode("id string NOT NULL, n int", [value, b'{"id": "y"}', value])
    event = {"id": "x", "n": 1}
    assert decoded.events.to_pylist() == [event, {"id": "y", "n": None}, event]


def test_records_cannot_lend_each_other_their_braces() -> None:
    """Two objects in one record and one object in two make as many rows as records, and are still bad."""
    values: list[bytes | None] = [b'{"a": 1}{"a": 3}', b'{"x":', b'{"a": 2}}', b'{"a": 4}']
    decoded = decode("a int", values)
    assert decoded.rejects.rows == [0, 1, 2]
    assert decoded.events.column("a").to_pylist() == [4]


def test_the_first_problem_in_the_order_of_the_schema_is_told() -> None:
    value = b'{"c": 1, "c": 1, "b": "x"}'
    assert decode("a int, b int, c int", [value]).rejects.messages == ['b: "x" is not an integer (Int32)']
    assert decode("c int, b int", [value]).rejects.messages == ["c: the key is there more than once"]
    required = decode("a int NOT NULL, b int", [value])
    assert required.rejects.messages == ["a: a required field is missing"]


def test_required_fields_inside_of_structs() -> None:
    ddl = "s struct<x: int NOT NULL, t: struct<y: int NOT NULL>>, l array<struct<z: int NOT NULL>>"
    values: list[bytes | None] = [
        b'{"s": {"x": 1, "t": {"y": 2}}, "l": [{"z": 3}, null]}',
        b'{"s": null}',
        b'{"s": {"x": 1, "t": null}}',
        b'{"s": {}}',
        b'{"s": {"x": null}}',
        b'{"s": {"x": 1, "t": {}}}',
        b'{"l": [{"z": 1}, {"z": null}]}',
        b'{"s": {"x": 7}, "l": []}',
    ]
    decoded = decode(ddl, values)
    assert decoded.kept is not None and decoded.kept.to_pylist() == [0, 1, 2, 7]
    assert decoded.rejects.messages == [
        "s.x: a required field is missing",
        "s.x: a required field is null",
        "s.t.y: a required field is missing",
        "l[1].z: a required field is null",
    ]


def test_required_elements() -> None:
    schema = pa.schema([("l", pa.list_(pa.field("element", pa.int32(), nullable=False)))])
    for careful in (False, True):
        decoded = create("json", schema).decode(batch([b'{"l": [1]}', b'{"l": [1, null]}']), careful=careful)
        assert decoded.events.column("l").to_pylist() == [[1]]
        assert decoded.rejects.messages == ["l[1]: a required value is null"]


def test_doubled_keys_in_maps_and_structs() -> None:
    values: list[bytes | None] = [
        b'{"m": {"x": 1, "x": 2}}',
        b'{"m": {"x": 1}, "m": {"x": 2}}',
        b'{"m": {"x": 1}, "\\u006d": {"x": 2}}',
        b'{"s": {"a": 1, "a": 1}}',
        b'{"s": {"b": 1, "b": 1}, "m": {"\\u0078": 1}}',
    ]
    decoded = decode("m map<string, int>, s struct<a: int>", values)
    assert decoded.rejects.reasons == ["DuplicateKey"] * 4
    assert decoded.rejects.messages[0] == 'm: the key "x" is there more than once'
    assert decoded.events.to_pylist() == [{"m": [("x", 1)], "s": {"a": None}}]


def test_a_map_column_with_a_name_that_needs_escapes() -> None:
    schema = pa.schema([("a/b", pa.map_(pa.string(), pa.int32())), ("n", pa.int32())])
    format_ = create("json", schema)
    values = [b'{"a/b": {"x": 1}, "n": 1}', b'{"a/b": {}, "a\\/b": {}}', b'{"a\\/b": {"y": 2}}']
    for careful in (False, True):
        decoded = format_.decode(batch(values), careful=careful)
        assert decoded.rejects.rows == [1]
        assert decoded.events.column("a/b").to_pylist() == [[("x", 1)], [("y", 2)]]


def test_many_bad_records_in_a_large_batch_and_the_order_is_kept() -> None:
    def value(row: int) -> bytes | None:
        kinds = {
            3: b'{"n": 1.5}',
            13: b'{"n": 1, "n": 2}',
            23: b'{"n": %d.0}' % row,  # right, and only the slow way takes it
            33: b"{",
            43: None,
            53: b'{"n": 1, "t": "2024-02-30T00:00:00Z"}',
            63: b'{"d": 1e99}',
            73: b'{"n": 1, "new": NaN}',
        }
        return kinds.get(row % 100, b'{"n": %d, "t": "2024-01-15T10:30:00Z"}' % row)

    decoded = decode("n int, t timestamp, d decimal(9,2)", [value(row) for row in range(3000)])
    bad = {3, 13, 33, 43, 53, 63, 73}
    assert decoded.rejects.rows == [row for row in range(3000) if row % 100 in bad]
    assert decoded.events.column("n").to_pylist() == [row for row in range(3000) if row % 100 not in bad]


def test_a_record_the_typed_pass_cannot_fault_costs_no_neighbour() -> None:
    """Keys that are doubled in a record with few keys, and a decimal deep inside: left to the slices."""
    ddl = "n int, o int, s array<struct<d: decimal(4,1)>>"
    values: list[bytes | None] = [b'{"n": %d, "o": 1, "s": [{"d": 1.5}]}' % row for row in range(1000)]
    values[300] = b'{"n": 1, "n": 2}'
    values[700] = b'{"s": [{"d": 1.55}]}'
    decoded = decode(ddl, values)
    assert decoded.rejects.rows == [300, 700]
    assert decoded.rejects.messages[1] == "s[0].d: 1.55 has more than 1 decimal places (Decimal128(4,1))"


def test_doubled_keys_among_records_of_many_shapes() -> None:
    shapes = (
        b'{"n": 1}',
        b'{"n": 1, "o": 2}',
        b'{"n": 1, "o": 2, "x": {"y": ":"}}',
        b'{"n": 1, "z": [":::"]}',
    )
    values: list[bytes | None] = [shapes[row % 4] for row in range(1000)]
    values[500] = b'{"n": 1, "n": 1}'
    values[501] = b'{"n": 1, "x": {"y": 1, "y": 2}}'  # nobody asked for y
    values[502] = b'{"n": 1, "x": 1e999, "z": "\\u003a"}'
    assert decode("n int, o int", values).rejects.rows == [500]


def test_all_records_bad_and_no_records() -> None:
    decoded = decode("n int NOT NULL", [b"{}", b"[]", None])
    assert decoded.events.num_rows == 0 and decoded.kept is not None and len(decoded.kept) == 0
    assert decode("n int NOT NULL", []).events.num_rows == 0


def test_a_schema_of_maps_only() -> None:
    decoded = decode("m map<string, string> NOT NULL", [b'{"m": {"a": "b"}}', b"{}", b"null"])
    assert decoded.events.column("m").to_pylist() == [[("a", "b")]]
    assert decoded.rejects.reasons == ["MissingField", "NotAnObject"]


def test_a_slice_of_a_batch() -> None:
    values = [b'{"n": %d}' % row if row != 5 else b"{" for row in range(10)]
    format_ = create("json", parse_schema("n int"))
    decoded = format_.decode(batch(values).slice(4, 4))
    assert decoded.events.column("n").to_pylist() == [4, 6, 7] and decoded.rejects.rows == [1]
    clean = format_.decode(batch(values).slice(6, 2))
    assert clean.events.column("n").to_pylist() == [6, 7] and clean.kept is None


def test_messages_are_short_and_text() -> None:
    long = b'{"v": "' + b"x" * 5000 + b'"}'
    broken = b'{"v": \\' + "😀".encode() * 500
    decoded = decode("v int", [long, broken, b'{"v": "\\udc00"}'])
    assert all(len(message) <= 150 and message.encode() for message in decoded.rejects.messages)
