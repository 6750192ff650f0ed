"""Which records of a block are the bad ones? A typed pass over each, in C, that names suspects.

A suspect is decoded again by itself, so a wrong suspicion costs time and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any

import msgspec
import pyarrow as pa

from rivermouth.formats.json_convert import Convert, converter
from rivermouth.formats.json_text import BadValue

Check = Callable[[bytes], Any]


def typed_decoder(schema: pa.Schema) -> Check:
    """A function that raises for nearly every record the block reader would raise for."""
    decode = msgspec.json.Decoder(_struct([schema.field(i) for i in range(len(schema))])).decode
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


def find(values: list[bytes], check: Check) -> list[int]:
    """The places of the suspects."""
    suspects = []
    for place, value in enumerate(values):
        try:
            check(value)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, BadValue):
            suspects.append(place)
    return suspects


def _attribute(index: int) -> str:
    return f"f{index}"


def _struct(fields: list[pa.Field]) -> type[msgspec.Struct]:
    members = [(_attribute(i), _type(field.type) | None, None) for i, field in enumerate(fields)]
    names = {_attribute(i): field.name for i, field in enumerate(fields)}
    return msgspec.defstruct("Event", members, rename=names, gc=False)


def _type(type_: pa.DataType) -> Any:
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
        return _struct([type_.field(i) for i in range(type_.num_fields)])
    if pa.types.is_list(type_):
        return list[_type(type_.value_type) | None]  # type: ignore[misc]
    if pa.types.is_map(type_):
        return dict[str, Any]
    return str
