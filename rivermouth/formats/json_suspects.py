"""Which records of a block are the bad ones? A typed pass over each, in C, that names suspects.

A suspect is decoded again by itself, so a wrong suspicion costs time and nothing else.
"""

from __future__ import annotations

import datetime as dt
from collections import deque
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import repeat
from operator import length_hint
from typing import Annotated, Any

import msgspec
import numpy as np
import pyarrow as pa

from rivermouth.formats.json_convert import Convert, converter
from rivermouth.formats.json_text import BadValue

Check = Callable[[Any], Any]


def typed_decoder(schema: pa.Schema, *, times: bool = True) -> Check:
    """A function that raises for nearly every record the block reader would raise for.

    With `times` it also raises for what is no date or timestamp, and for some short forms that are.
    """
    decode = msgspec.json.Decoder(_struct(list(schema), times)).decode
    checks = [
        (_attribute(i), converter(field.type))
        for i, field in enumerate(schema)
        if pa.types.is_decimal(field.type)
    ]
    return _with_checks(decode, checks) if checks else decode


def _with_checks(decode: Check, checks: list[tuple[str, Convert]]) -> Check:
    def check(raw: bytes) -> None:
        event = decode(raw)
        for attribute, convert in checks:
            value = getattr(event, attribute)
            if value is not None:
                convert(str(value))

    return check


def find(values: Sequence[bytes | None], check: Check) -> list[int]:
    """The places of the suspects."""
    suspects = []
    left = iter(values)
    while True:
        try:
            deque(map(check, left), maxlen=0)  # a loop without bytecode: it costs less than the checks
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, BadValue):
            suspects.append(len(values) - length_hint(left) - 1)
        else:
            return suspects


def find_doubled_keys(values: list[bytes]) -> list[int]:
    """The places of records that may have a key twice, which the typed pass does not see."""
    if not values:
        return []
    counts = np.fromiter(map(bytes.count, values, repeat(b":")), np.int64, len(values))
    more = np.flatnonzero(counts > np.median(counts))
    if 20 * len(more) < len(values):
        found: list[int] = more.tolist()
        return found
    # Records of many shapes: read and written again, a doubled key is there once.
    pairs = enumerate(zip(values, counts.tolist(), strict=True))
    return [place for place, (value, count) in pairs if _colons_of_distinct_keys(value) != count]


def _colons_of_distinct_keys(value: bytes) -> int:
    try:
        return msgspec.json.encode(msgspec.json.decode(value)).count(b":")
    except (msgspec.MsgspecError, RecursionError):
        return -1


def _attribute(index: int) -> str:
    return f"f{index}"


def _struct(fields: list[pa.Field], times: bool) -> type[msgspec.Struct]:
    members = [(_attribute(i), _type(field.type, times) | None, None) for i, field in enumerate(fields)]
    names = {_attribute(i): field.name for i, field in enumerate(fields)}
    return msgspec.defstruct("Event", members, rename=names, gc=False)


def _type(type_: pa.DataType, times: bool) -> Any:
    if pa.types.is_boolean(type_):
        return bool
    if pa.types.is_uint64(type_):
        return Annotated[int, msgspec.Meta(ge=0)]
    if pa.types.is_integer(type_):
        bits, signed = type_.bit_width, pa.types.is_signed_integer(type_)
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        return Annotated[int, msgspec.Meta(ge=low, le=high)]
    if pa.types.is_floating(type_):
        return float
    if pa.types.is_decimal(type_):
        return Decimal  # from a number or a string, with all its digits
    if pa.types.is_struct(type_):
        return _struct([type_.field(i) for i in range(type_.num_fields)], times)
    if pa.types.is_list(type_):
        return list[_type(type_.value_type, times) | None]  # type: ignore[misc]
    if times and pa.types.is_timestamp(type_):
        return dt.datetime
    if times and pa.types.is_date(type_):
        return dt.date
    if pa.types.is_map(type_):
        return dict[str, Any]
    return str
