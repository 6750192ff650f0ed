"""docs/formats.md: every type takes what it says, every example record is bad for the reason it gives."""

from __future__ import annotations

import codecs
import datetime as dt

import pyarrow as pa
import pytest

from rivermouth import formats
from rivermouth.config.types import parse_schema, parse_type, storage_type
from rivermouth.formats.base import REASONS
from rivermouth.records import RECORD_SCHEMA
from tests.docs.markdown import ROOT, codes, prose, rows

FORMATS = ROOT / "docs" / "formats.md"
TYPES = rows(FORMATS, "type")
BAD = rows(FORMATS, "reason")
KINDS = {codes(row[0])[0]: row for row in rows(FORMATS, "`schema_type`")}


def decode(kind: str, value: bytes | None, ddl: str | None = None) -> formats.base.Decoded:
    moment = dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)
    record = {"value": value, "topic": "t", "partition": 0, "offset": 0, "timestamp": moment, "headers": []}
    batch = pa.RecordBatch.from_pylist([record], schema=RECORD_SCHEMA)
    return formats.create(kind, parse_schema(ddl) if ddl else None).decode(batch)


@pytest.mark.parametrize("row", TYPES, ids=lambda row: row[0])
def test_a_type_is_stored_as_it_says_and_takes_what_it_says(row):
    (name,), others, (stored,), takes, refuses = (codes(cell) for cell in row)
    types = {parse_type(each) for each in (name, *others)}
    assert len(types) == 1
    assert storage_type(types.pop()) == parse_type(stored)
    assert takes and refuses
    for value in takes:
        assert decode("json", f'{{"x": {value}}}'.encode(), f"x {name}").events.num_rows == 1, value
    for value in refuses:
        assert decode("json", f'{{"x": {value}}}'.encode(), f"x {name}").rejects.reasons == ["WrongType"], (
            value
        )


@pytest.mark.parametrize("row", BAD, ids=lambda row: f"{row[0]} {row[2]}")
def test_an_example_record_is_bad_for_its_reason(row):
    (reason,), (kind,), value, message = codes(row[0]), codes(row[1]), row[2], row[3]
    raw = None if value.startswith("none") else codecs.escape_decode(codes(value)[0].encode())[0]
    schemas = [code for code in codes(prose(FORMATS)) if code.startswith("id BIGINT")]
    rejects = decode(kind, raw, schemas[0] if kind == "json" else None).rejects
    assert (rejects.reasons, rejects.messages) == ([reason], [message])


def test_every_reason_has_an_example():
    assert {codes(row[0])[0] for row in BAD} == set(REASONS)


def test_every_format_has_its_columns():
    assert set(KINDS) == set(formats.SCHEMA_TYPES)
    for kind, row in KINDS.items():
        if kind != "json":
            assert codes(row[2]) == formats.create(kind).schema.names
