"""From a JSON value to a column's value, strictly: it fits exactly, or it is a `BadValue` that says why.

These converters decide what a right value is. The block reader only ever accepts what they accept.
"""

from __future__ import annotations

import binascii
import datetime as dt
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from math import isinf
from typing import Any

import pyarrow as pa

from rivermouth.config.types import arrow_name
from rivermouth.formats.base import DUPLICATE_KEY, MISSING_FIELD, WRONG_TYPE
from rivermouth.formats.json_text import BadValue, Doubled, Number, show

Convert = Callable[[Any], Any]

DATE = r"(\d{4})-(\d\d)-(\d\d)"
_DATE = re.compile(DATE, re.ASCII)
_TIMESTAMP = re.compile(
    DATE + r"(?:[T ](\d\d)(?::(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)?(Z|[+-]\d\d(?::?\d\d)?)?)?", re.ASCII
)
_INTEGER = re.compile(r"-?[0-9]{1,20}")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_EPOCH = dt.date(1970, 1, 1).toordinal()
_DAY = 86_400_000_000
MIN_TIMESTAMP = (dt.date.min.toordinal() - _EPOCH) * _DAY
MAX_TIMESTAMP = (dt.date.max.toordinal() - _EPOCH + 1) * _DAY - 1


def converter(type_: pa.DataType) -> Convert:
    """A function from a JSON value that is not null to what `pa.array` takes for the stored type."""
    name = arrow_name(type_)
    if pa.types.is_string(type_):
        return lambda value: _string(value, name)
    if pa.types.is_boolean(type_):
        return lambda value: _boolean(value, name)
    if pa.types.is_integer(type_):
        low, high = _bounds(type_)
        return lambda value: _integer(value, low, high, name)
    if pa.types.is_float64(type_):
        return lambda value: _float(value, float, name)
    if pa.types.is_float32(type_):
        # Through float64 the value would be rounded twice.
        return lambda value: _float(value, lambda text: pa.scalar(text).cast(pa.float32()).as_py(), name)
    if pa.types.is_decimal(type_):
        return lambda value: _decimal(value, type_.precision, type_.scale, name)
    if pa.types.is_date(type_):
        return lambda value: _date(value, name)
    if pa.types.is_timestamp(type_):
        return lambda value: _timestamp(value, type_.tz is not None, name)
    if pa.types.is_binary(type_):
        return lambda value: _binary(value, name)
    if pa.types.is_struct(type_):
        return struct(pa.schema([type_.field(i) for i in range(type_.num_fields)]), name)
    if pa.types.is_list(type_):
        return _list(type_.value_field, name)
    if pa.types.is_map(type_):
        return _map(type_.item_field, name)
    raise TypeError(f"JSON cannot be decoded into {type_}")


def struct(fields: pa.Schema, name: str) -> Convert:
    """A function from a JSON object to a dict with the fields' values, unknown keys left out."""
    members = [(field.name, converter(field.type), field.nullable) for field in fields]

    def convert(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise BadValue(WRONG_TYPE, f"{show(value)} is not an object ({name})")
        doubled = value.doubled if isinstance(value, Doubled) else ()
        result = {}
        for key, member, nullable in members:
            if key in doubled:
                raise BadValue(DUPLICATE_KEY, "the key is there more than once").within(key)
            inner = value.get(key)
            if inner is not None:
                try:
                    inner = member(inner)
                except BadValue as bad:
                    raise bad.within(key) from None
            elif not nullable:
                what = "is null" if key in value else "is missing"
                raise BadValue(MISSING_FIELD, f"a required field {what}").within(key)
            result[key] = inner
        return result

    return convert


def _list(element: pa.Field, name: str) -> Convert:
    member = converter(element.type)

    def convert(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise BadValue(WRONG_TYPE, f"{show(value)} is not an array ({name})")
        return [_inner(inner, member, element.nullable, f"[{index}]") for index, inner in enumerate(value)]

    return convert


def _map(item: pa.Field, name: str) -> Convert:
    member = converter(item.type)

    def convert(value: Any) -> list[tuple[str, Any]]:
        if not isinstance(value, dict):
            raise BadValue(WRONG_TYPE, f"{show(value)} is not an object ({name})")
        if isinstance(value, Doubled):
            key = next(key for key in value if key in value.doubled)
            raise BadValue(DUPLICATE_KEY, f"the key {show(key)} is there more than once")
        return [
            (_string(key, "Utf8"), _inner(inner, member, item.nullable, f"[{show(key)}]"))
            for key, inner in value.items()
        ]

    return convert


def _inner(value: Any, member: Convert, nullable: bool, step: str) -> Any:
    if value is None:
        if not nullable:
            raise BadValue(MISSING_FIELD, "a required value is null").within(step)
        return None
    try:
        return member(value)
    except BadValue as bad:
        raise bad.within(step) from None


def _bounds(type_: pa.DataType) -> tuple[int, int]:
    bits = type_.bit_width
    if pa.types.is_unsigned_integer(type_):
        return 0, 2**bits - 1
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def _wrong(value: Any, what: str, name: str) -> BadValue:
    return BadValue(WRONG_TYPE, f"{show(value)} is not {what} ({name})")


def _string(value: Any, name: str) -> str:
    if type(value) is not str:
        raise _wrong(value, "a string", name)
    try:
        value.isascii() or value.encode()
    except UnicodeEncodeError:
        raise BadValue(WRONG_TYPE, f"{show(value)} has half a surrogate pair ({name})") from None
    return value


def _boolean(value: Any, name: str) -> bool:
    if type(value) is not bool:
        raise _wrong(value, "true or false", name)
    return value


def _integer(value: Any, low: int, high: int, name: str) -> int:
    if type(value) is not Number:
        raise _wrong(value, "an integer", name)
    if _INTEGER.fullmatch(value):
        number = int(value)
    else:
        # 1.0 and 1e3 are integers too; a bound before the int keeps 1e999999999 small.
        exact = _exact(value, name)
        number = high + 1 if exact > high else low - 1 if exact < low else int(exact)
        if low <= number <= high and number != exact:
            raise _wrong(value, "an integer", name)
    if not low <= number <= high:
        raise BadValue(WRONG_TYPE, f"{show(value)} is out of range, {low} to {high} ({name})")
    return number


def _exact(text: str, name: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise BadValue(WRONG_TYPE, f"{show(Number(text))} is out of range ({name})") from None


def _float(value: Any, read: Callable[[str], float], name: str) -> float:
    if type(value) is not Number:
        raise _wrong(value, "a number", name)
    number = read(str(value))
    if isinf(number):
        raise BadValue(WRONG_TYPE, f"{show(value)} is out of range ({name})")
    return number


def _decimal(value: Any, precision: int, scale: int, name: str) -> Decimal:
    if not isinstance(value, str) or not _DECIMAL.fullmatch(value):
        raise _wrong(value, "a decimal number", name)
    exact = _exact(value, name)
    sign, digits, exponent = exact.as_tuple()
    assert isinstance(exponent, int)
    if not exact:
        return Decimal((0, (0,), -scale))
    if exact.adjusted() >= precision - scale:
        raise BadValue(WRONG_TYPE, f"{show(value)} is out of range ({name})")
    spare = -scale - exponent
    if spare > 0 and any(digits[-spare:]):
        raise BadValue(WRONG_TYPE, f"{show(value)} has more than {scale} decimal places ({name})")
    digits = digits[: len(digits) - spare] if spare > 0 else digits + (0,) * -spare
    return Decimal((sign, digits, -scale))


def _date(value: Any, name: str) -> int:
    match = _DATE.fullmatch(value) if type(value) is str else None
    if match is None:
        raise _wrong(value, "a date, YYYY-MM-DD", name)
    return _days(value, match, name)


def _days(value: str, match: re.Match[str], name: str) -> int:
    try:
        return dt.date(int(match[1]), int(match[2]), int(match[3])).toordinal() - _EPOCH
    except ValueError:
        raise BadValue(WRONG_TYPE, f"{show(value)} is not a day of the calendar ({name})") from None


def _timestamp(value: Any, zoned: bool, name: str) -> int:
    match = _TIMESTAMP.fullmatch(value) if type(value) is str else None
    if match is None:
        raise _wrong(value, "a timestamp, YYYY-MM-DDThh:mm:ss[.ffffff]" + "[Z or +hh:mm]" * zoned, name)
    hour, minute, second = int(match[4] or 0), int(match[5] or 0), int(match[6] or 0)
    if hour > 23 or minute > 59 or second > 59:
        raise BadValue(WRONG_TYPE, f"{show(value)} is not a time of the day ({name})")
    offset = match[8]
    if offset and not zoned:
        raise BadValue(WRONG_TYPE, f"{show(value)} has an offset, the column none ({name})")
    micros = _days(value, match, name) * _DAY + int((match[7] or "0").ljust(6, "0"))
    micros += (hour * 3600 + minute * 60 + second) * 1_000_000
    if offset and offset != "Z":
        hours, minutes = int(offset[1:3]), int(offset[3:].lstrip(":") or 0)
        if hours > 23 or minutes > 59:
            raise BadValue(WRONG_TYPE, f"{show(value)} has an offset out of range ({name})")
        micros += (hours * 60 + minutes) * 60_000_000 * (1 if offset[0] == "-" else -1)
    if not MIN_TIMESTAMP <= micros <= MAX_TIMESTAMP:
        raise BadValue(WRONG_TYPE, f"{show(value)} is not in the years 1 to 9999 ({name})")
    return micros


def base64_bytes(text: str) -> bytes | None:
    """The bytes of a base64 text, or None if it is not exactly what an encoder writes."""
    try:
        data = binascii.a2b_base64(text)
    except ValueError:
        return None
    return data if binascii.b2a_base64(data, newline=False).decode() == text else None


def _binary(value: Any, name: str) -> bytes:
    data = base64_bytes(value) if type(value) is str else None
    if data is None:
        raise _wrong(value, "base64", name)
    return data
