"""Type names and DDL are read as Spark and Arrow mean them, and errors say what to write instead."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rivermouth.config.types import (
    TypeSyntaxError,
    arrow_name,
    parse_schema,
    parse_type,
    storage_schema,
    storage_type,
    type_name,
)

UTC = pa.timestamp("us", tz="UTC")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Utf8", pa.string()),
        ("LargeUtf8", pa.string()),
        ("Int8", pa.int8()),
        ("UInt64", pa.uint64()),
        ("Float32", pa.float32()),
        ("Boolean", pa.bool_()),
        ("Timestamp", UTC),
        ("Date32", pa.date32()),
        ("Binary", pa.binary()),
        ("Decimal128(38, 10)", pa.decimal128(38, 10)),
        ("STRING", pa.string()),
        ("tinyint", pa.int8()),
        ("byte", pa.int8()),
        ("short", pa.int16()),
        ("Integer", pa.int32()),
        ("long", pa.int64()),
        ("real", pa.float32()),
        ("double", pa.float64()),
        ("timestamp_ntz", pa.timestamp("us")),
        ("decimal", pa.decimal128(10, 0)),
        ("numeric(5)", pa.decimal128(5, 0)),
        ("dec(5,2)", pa.decimal128(5, 2)),
        (" array< int > ", pa.list_(pa.int32())),
        ("map<string,array<double>>", pa.map_(pa.string(), pa.list_(pa.float64()))),
        (
            "struct<a: int, b string NOT NULL, `c-d`: date>",
            pa.struct([("a", pa.int32()), pa.field("b", pa.string(), False), ("c-d", pa.date32())]),
        ),
    ],
)
def test_a_type_is_read(text: str, expected: pa.DataType) -> None:
    assert parse_type(text) == expected


@pytest.mark.parametrize(
    ("text", "position", "part"),
    [
        ("Utf9", 0, "did you mean Utf8?"),
        ("array<strng>", 6, "did you mean string?"),
        ("bool", 0, "did you mean boolean?"),
        ("xyzzy", 0, "for example string"),
        ("varchar(10)", 0, "use string"),
        ("char(1)", 0, "use string"),
        ("interval", 0, "cannot store an interval"),
        ("variant", 0, "keep the JSON text"),
        ("void", 0, "leave the column out"),
        ("", 0, "expected a type, it ends here"),
        ("int int", 4, "expected the end of the type, found 'int'"),
        ("array<int", 9, "expected '>'"),
        ("array int", 6, "expected '<' after array"),
        ("struct<>", 7, "expected a field name, found '>'"),
        ("struct<a int,>", 13, "expected a field name"),
        ("struct<a int NOT>", 16, "expected NULL after NOT"),
        ("struct<a int COMMENT x>", 21, "expected a quoted text"),
        ("map<int, string>", 4, "keys of a map are strings, not int"),
        ("map<string>", 10, "expected ','"),
        ("decimal(39,0)", 0, "1 to 38 digits"),
        ("decimal(5,6)", 0, "at most its precision"),
        ("decimal(x)", 8, "expected a precision"),
        ("Decimal128", 10, "(precision,scale)"),
        ("struct<a: int, A: int>", 15, "there twice (as 'a'"),
        ("struct<`a b`: int>", 7, "cannot contain ' '"),
        ("struct<``: int>", 7, "needs a name"),
        ("struct<`a: int>", 7, "not closed"),
        ("int;", 3, "';' cannot stand here"),
        ("array<" * 40 + "int" + ">" * 40, 198, "32 deep"),
    ],
)
def test_an_error_says_what_was_expected_where(text: str, position: int, part: str) -> None:
    with pytest.raises(TypeSyntaxError) as caught:
        parse_type(text)
    assert part in caught.value.message
    assert caught.value.position == position


def test_a_schema_is_read_from_ddl() -> None:
    schema = parse_schema("id BIGINT NOT NULL COMMENT 'it''s' , s STRUCT<x: INT>".replace("''", "\\'"))
    assert schema == pa.schema([pa.field("id", pa.int64(), False), ("s", pa.struct([("x", pa.int32())]))])
    assert schema.field("id").metadata == {b"comment": b"it's"}


def test_a_schema_is_read_from_a_list() -> None:
    entries = [{"name": "id", "data_type": "Utf8", "nullable": False}, {"name": "n", "data_type": "UInt8"}]
    assert parse_schema(entries) == pa.schema([pa.field("id", pa.string(), False), ("n", pa.uint8())])


@pytest.mark.parametrize(
    ("entries", "index"),
    [
        ([{"name": "a", "data_type": "Utf8"}, {"name": "A", "data_type": "Utf8"}], 1),
        ([{"name": "a", "data_type": "Utf8"}, {"name": "b", "data_type": "Utf9"}], 1),
        ([{"name": "a b", "data_type": "Utf8"}], 0),
    ],
)
def test_an_error_in_a_list_names_the_entry(entries: list[dict[str, object]], index: int) -> None:
    with pytest.raises(TypeSyntaxError) as caught:
        parse_schema(entries)
    assert caught.value.index == index


@pytest.mark.parametrize("text", ["", "a", "a int,", "a int b int", "a int, a string"])
def test_bad_ddl_is_refused(text: str) -> None:
    with pytest.raises(TypeSyntaxError):
        parse_schema(text)


def test_an_empty_list_is_refused() -> None:
    with pytest.raises(TypeSyntaxError):
        parse_schema([])


def test_the_table_stores_unsigned_integers_in_the_next_wider_type() -> None:
    decoded = parse_type("struct<a: array<UInt8>, b: map<string, UInt16>, c: UInt32, d: UInt64>")
    stored = parse_type("struct<a: array<smallint>, b: map<string, int>, c: bigint, d: dec(20)>")
    assert storage_type(decoded) == stored
    assert storage_schema(parse_schema("x UInt8 NOT NULL")) == parse_schema("x smallint NOT NULL")


def test_names_in_messages() -> None:
    assert type_name(UTC) == "timestamp"
    assert arrow_name(pa.int32()) == "Int32"
    assert arrow_name(pa.decimal128(9, 2)) == "Decimal128(9,2)"
    assert arrow_name(pa.timestamp("us")) == "timestamp_ntz"


SCALARS = st.sampled_from(
    [parse_type(name) for name in ("string", "tinyint", "UInt64", "double", "timestamp_ntz", "dec(9,2)")]
)
NAMES = st.text("abcXYZ_-`.é", min_size=1, max_size=4)


def structs(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    field = st.tuples(NAMES, inner, st.booleans())
    fields = st.lists(field, min_size=1, max_size=4, unique_by=lambda found: found[0].lower())
    return fields.map(lambda found: pa.struct([pa.field(*field) for field in found]))


TYPES = st.recursive(
    SCALARS,
    lambda inner: structs(inner) | inner.map(pa.list_) | inner.map(lambda t: pa.map_(pa.string(), t)),
    max_leaves=6,
)


@given(TYPES)
def test_a_type_that_is_written_is_read_back(type_: pa.DataType) -> None:
    assert parse_type(type_name(type_)) == type_


@given(st.text("arystuci<>():, `'`8int32", max_size=30))
def test_any_text_is_a_type_or_a_syntax_error(text: str) -> None:
    position = 0
    try:
        parse_type(text)
    except TypeSyntaxError as error:
        position = error.position
    assert 0 <= position <= len(text)
