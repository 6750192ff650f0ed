"""What is not rejected equals what Python's json says; both ways of decoding agree; nothing crashes."""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
import random
import struct
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from rivermouth.config.types import parse_schema
from rivermouth.formats import create
from rivermouth.formats.json_text import BadValue, parse, parse_deep
from tests.formats.mutants import KEYS, SCHEMAS, mutant
from tests.formats.records import batch

FORMATS = [create("json", parse_schema(ddl)) for ddl in SCHEMAS]


def expected(value: Any, type_: pa.DataType) -> Any:
    """The column's value for what Python's json read, by other means than the product's."""
    if value is None:
        return None
    if pa.types.is_struct(type_):
        fields = (type_.field(i) for i in range(type_.num_fields))
        return {field.name: expected(value.get(field.name), field.type) for field in fields}
    if pa.types.is_map(type_):
        return [(key, expected(inner, type_.item_type)) for key, inner in value.items()]
    if pa.types.is_list(type_):
        return [expected(inner, type_.value_type) for inner in value]
    if pa.types.is_date(type_):
        return dt.date.fromisoformat(value)
    if pa.types.is_timestamp(type_):
        return moment(value, type_.tz is not None)
    if pa.types.is_binary(type_):
        return base64.b64decode(value, validate=True)
    if pa.types.is_decimal(type_):
        return Decimal(value)
    if pa.types.is_float32(type_):
        return struct.unpack("f", struct.pack("f", float(value)))[0]
    if pa.types.is_float64(type_):
        return float(value)
    if pa.types.is_integer(type_):
        assert value == int(value) and not isinstance(value, (bool, str))
        return int(value)
    assert isinstance(value, (bool if pa.types.is_boolean(type_) else str))
    return value


def moment(text: str, zoned: bool) -> dt.datetime:
    """A timestamp, completed to what every Python's fromisoformat reads."""
    day, rest = text[:10], text[11:].replace("Z", "+00:00")
    at = max(rest.find("+"), rest.find("-"))
    clock, offset = (rest, "") if at < 0 else (rest[:at], rest[at:])
    clock, _, fraction = clock.partition(".")
    clock = (clock or "00").ljust(2) + ":00:00"[max(0, len(clock) - 2) :]
    offset = offset if ":" in offset else offset and f"{offset[:3]}:{offset[3:] or '00'}"
    found = dt.datetime.fromisoformat(f"{day}T{clock}.{fraction.ljust(6, '0')}{offset}")
    if not zoned:
        assert found.tzinfo is None
        return found
    return (found if found.tzinfo else found.replace(tzinfo=dt.timezone.utc)).astimezone(dt.timezone.utc)


@settings(max_examples=150)
@given(st.integers(0, len(SCHEMAS) - 1), st.integers(0, 2**32), st.integers(1, 12))
def test_what_is_kept_is_what_json_says_and_both_ways_agree(kind: int, seed: int, count: int) -> None:
    source = random.Random(seed)
    values = [mutant(source, KEYS[kind]) for _ in range(count)]
    format_ = create("json", parse_schema(SCHEMAS[kind]))
    careful = format_.decode(batch(values), careful=True)
    fast = format_.decode(batch(values))
    again = FORMATS[kind].decode(batch(values))  # this one remembers the batches before
    for other in (fast, again):
        assert other.rejects == careful.rejects
        assert other.events.equals(careful.events)
        other.events.validate(full=True)
    kept = range(count) if fast.kept is None else fast.kept.to_pylist()
    assert sorted([*kept, *fast.rejects.rows]) == list(range(count))
    for row, event in zip(kept, fast.events.to_pylist(), strict=True):
        whole = json.loads(values[row] or b"", parse_float=Decimal)
        for field in parse_schema(SCHEMAS[kind]):
            wanted = expected(whole.get(field.name), field.type)
            assert event[field.name] == wanted, (field.name, values[row])
            assert field.nullable or wanted is not None


@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(width=32, allow_nan=False, allow_infinity=False),
)
def test_floats_come_back_to_the_bit(double: float, single: float) -> None:
    format_ = create("json", parse_schema("d double, f float"))
    event = format_.decode(batch([json.dumps({"d": double, "f": single}).encode()])).events.to_pylist()[0]
    assert event == {"d": double, "f": single}
    assert math.copysign(1, event["d"]) == math.copysign(1, double)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


@given(JSON, st.integers(0, 40), st.sampled_from(["", "}", "]", ",", '"', " ", "x", "0"]))
def test_the_deep_reader_reads_what_the_other_reads(value: Any, place: int, extra: str) -> None:
    text = json.dumps(value)
    text = text[:place] + extra + text[place:]
    try:
        usual = parse(text.encode())
    except BadValue:
        usual = BadValue
    try:
        deep = parse_deep(text)
    except json.JSONDecodeError:
        deep = BadValue
    assert deep == usual


def test_no_mutant_crashes_a_process() -> None:
    """In a process of its own, because what is feared is a crash of the block reader."""
    program = (
        "import random\n"
        "from rivermouth.config.types import parse_schema\n"
        "from rivermouth.formats import create\n"
        "from tests.formats.mutants import KEYS, SCHEMAS, mutant\n"
        "from tests.formats.records import batch\n"
        "source = random.Random()\n"
        "for kind, ddl in enumerate(SCHEMAS):\n"
        "    format_ = create('json', parse_schema(ddl))\n"
        "    for count in (1, 2, 3, 5) * 40 + (500,):\n"
        "        values = [mutant(source, KEYS[kind], wild=True) for _ in range(count)]\n"
        "        decoded = format_.decode(batch(values))\n"
        "        assert decoded.events.num_rows + len(decoded.rejects) == count\n"
        "print('survived')\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "survived\n", done.stderr
