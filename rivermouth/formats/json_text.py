"""One JSON text, read strictly: numbers keep their digits, doubled keys are noticed, any depth is read."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from json import decoder
from typing import Any

from rivermouth.formats.base import INVALID_ENCODING, INVALID_JSON


class BadValue(Exception):
    """A value that cannot be used; `path` grows as it passes the fields it stands in."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.path = ""

    def within(self, step: str) -> BadValue:
        """Note the field or element the value stands in."""
        self.path = step + ("" if self.path[:1] in ("", "[") else ".") + self.path
        return self

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class Number(str):
    """A JSON number, as it was written."""

    __slots__ = ()


class Doubled(dict[str, Any]):
    """An object in which the keys in `doubled` stood more than once."""

    doubled: frozenset[str]


def parse(raw: bytes) -> Any:
    """Read one JSON value; numbers come as `Number`. Raises `BadValue`."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        where = f"byte {error.start + 1} (0x{raw[error.start]:02x})"
        raise BadValue(INVALID_ENCODING, f"{where} is not UTF-8") from None
    if text.startswith("\ufeff"):
        raise BadValue(INVALID_JSON, "the value begins with a byte order mark")
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise BadValue(INVALID_JSON, _explain(text, error)) from None
    except RecursionError:
        try:
            return parse_deep(text)
        except json.JSONDecodeError as error:
            raise BadValue(INVALID_JSON, _explain(text, error)) from None


def show(value: Any) -> str:
    """A short excerpt of a value, for a message."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    text = str(value) if isinstance(value, Number) else json.dumps(value, ensure_ascii=False)
    if len(text) > 60:
        text = text[:57] + "..."
    return text.encode("utf-8", "backslashreplace").decode()


def _explain(text: str, error: json.JSONDecodeError) -> str:
    if not text.strip(" \t\r\n"):
        return "the value is empty"
    if not text[error.pos :].strip(" \t\r\n") or error.msg.startswith("Unterminated"):
        return f"the value ends too early, after {show(text[-20:])}"
    known = {"Extra data": "something follows the value"}
    what = known.get(error.msg, error.msg[:1].lower() + error.msg[1:])
    return f"{what}, at character {error.pos + 1}: {show(text[error.pos : error.pos + 20])}"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) == len(pairs):
        return result
    counts = Counter(key for key, _ in pairs)
    doubled = Doubled(result)
    doubled.doubled = frozenset(key for key, count in counts.items() if count > 1)
    return doubled


def _no_constant(name: str) -> Any:
    raise BadValue(INVALID_JSON, f"{name} is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=Number, parse_float=Number, parse_constant=_no_constant
)
# C where there is C; the type stubs do not know it.
_scan_string: Callable[[str, int, bool], tuple[str, int]] = vars(decoder)["scanstring"]
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_WORDS = {"null": None, "true": True, "false": False}


def parse_deep(text: str) -> Any:
    """Read a JSON text without recursion, for one that is nested deeper than Python's stack."""
    open_objects: list[tuple[list[Any], str | None]] = []  # what is open: its members, and a key that waits
    members: list[Any] = []
    key: str | None = None
    in_object = False
    at = _blank(text, 0)
    while True:
        # At the start of a value.
        opened = text[at : at + 1]
        if opened in ("{", "["):
            open_objects.append((members, key))
            members, in_object = [], opened == "{"
            at = _blank(text, at + 1)
            if text[at : at + 1] != ("}" if in_object else "]"):
                key, at = _key(text, at) if in_object else (None, at)
                continue
            value: Any = None
            closing = True
        else:
            value, at = _scalar(text, at)
            closing = False
        # After a value: close what closes here, until a comma asks for the next value.
        while True:
            if closing:
                value = _object(members) if in_object else members
                at += 1
                members, key = open_objects.pop()
            if not open_objects:
                at = _blank(text, at)
                if at < len(text):
                    raise json.JSONDecodeError("Extra data", text, at)
                return value
            in_object = key is not None
            members.append((key, value) if in_object else value)
            at = _blank(text, at)
            mark = text[at : at + 1]
            if mark == ",":
                at = _blank(text, at + 1)
                key, at = _key(text, at) if in_object else (None, at)
                break
            if mark != ("}" if in_object else "]"):
                raise json.JSONDecodeError("Expecting ',' delimiter", text, at)
            closing = True


def _blank(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _key(text: str, at: int) -> tuple[str, int]:
    if text[at : at + 1] != '"':
        raise json.JSONDecodeError("Expecting property name enclosed in double quotes", text, at)
    key, at = _scan_string(text, at + 1, True)
    at = _blank(text, at)
    if text[at : at + 1] != ":":
        raise json.JSONDecodeError("Expecting ':' delimiter", text, at)
    return key, _blank(text, at + 1)


def _scalar(text: str, at: int) -> tuple[Any, int]:
    if text[at : at + 1] == '"':
        return _scan_string(text, at + 1, True)
    for word, value in _WORDS.items():
        if text.startswith(word, at):
            return value, at + len(word)
    number = _NUMBER.match(text, at)
    if number is None:
        raise json.JSONDecodeError("Expecting value", text, at)
    return Number(number.group()), number.end()
