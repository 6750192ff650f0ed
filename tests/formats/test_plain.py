"""The formats `string`, `int64` and `bytes`."""

from __future__ import annotations

import pickle
import struct

import pyarrow as pa
import pytest

from rivermouth.errors import ConfigError
from rivermouth.formats import SCHEMA_TYPES, create
from tests.formats.records import batch


def test_string_keeps_text_and_rejects_the_rest() -> None:
    decoded = create("string").decode(batch([b"System started", None, "é\0".encode(), b"a\xff", b""]))
    assert decoded.events.to_pylist() == [{"data": "System started"}, {"data": "é\0"}, {"data": ""}]
    assert decoded.kept is not None and decoded.kept.to_pylist() == [0, 2, 4]
    assert decoded.rejects.rows == [1, 3]
    assert decoded.rejects.reasons == ["NullValue", "InvalidEncoding"]
    assert decoded.rejects.messages[1] == "byte 2 (0xff) is not UTF-8"


def test_string_finds_the_few_in_many() -> None:
    values = [b"\xff" if row % 1000 == 7 else b"ok" for row in range(10_000)]
    decoded = create("string").decode(batch(values))
    assert decoded.rejects.rows == list(range(7, 10_000, 1000))
    assert decoded.events.num_rows == 9_990


def test_int64_is_eight_bytes_big_endian() -> None:
    numbers = [42, -1, 2**63 - 1, -(2**63)]
    values = [struct.pack(">q", number) for number in numbers]
    decoded = create("int64").decode(batch([*values, b"1234567", None, b"", b"123456789"]))
    assert decoded.events.column("value").to_pylist() == numbers
    assert decoded.rejects.rows == [4, 5, 6, 7]
    assert decoded.rejects.reasons == ["WrongLength", "NullValue", "WrongLength", "WrongLength"]
    assert decoded.rejects.messages[0] == "the value has 7 bytes, not 8"


def test_int64_of_a_slice() -> None:
    records = batch([struct.pack(">q", number) for number in range(10)]).slice(3, 4)
    decoded = create("int64").decode(records)
    assert decoded.kept is None
    assert decoded.events.column("value").to_pylist() == [3, 4, 5, 6]


def test_bytes_are_base64_with_their_size() -> None:
    decoded = create("bytes").decode(batch([b"\x01\x02\x03", None, b"", b"\xff"]))
    assert decoded.events.to_pylist() == [
        {"data": "AQID", "size": 3},
        {"data": "", "size": 0},
        {"data": "/w==", "size": 1},
    ]
    assert decoded.rejects.reasons == ["NullValue"]


@pytest.mark.parametrize("name", ["string", "int64", "bytes", "envelope"])
def test_an_empty_batch_has_the_schema(name: str) -> None:
    format_ = create(name)
    decoded = format_.decode(batch([]))
    assert decoded.events.schema.equals(format_.schema, check_metadata=True)
    assert decoded.events.num_rows == 0 and decoded.kept is None and len(decoded.rejects) == 0


@pytest.mark.parametrize("name", SCHEMA_TYPES)
def test_a_format_travels_by_pickle(name: str) -> None:
    schema = pa.schema([pa.field("a", pa.uint8(), False)]) if name == "json" else None
    format_ = create(name, schema)
    copy = pickle.loads(pickle.dumps(format_))
    assert copy.schema.equals(format_.schema)
    assert len(copy.decode(batch([None])).rejects) == 1


def test_what_cannot_be_created() -> None:
    for name, schema in (("json", None), ("avro", None), ("string", pa.schema([("a", pa.string())]))):
        with pytest.raises(ConfigError):
            create(name, schema)
