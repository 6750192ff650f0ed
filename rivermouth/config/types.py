"""Type names: Arrow's and Spark's, and Spark's DDL, read into Arrow types.

A schema is read into the types a format decodes to (`UInt8` is `pa.uint8()`); `storage_schema` gives the
types the Delta table stores, which has no unsigned integers.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple, NoReturn

import pyarrow as pa

from rivermouth.config.type_names import (
    ELSEWHERE,
    KNOWN,
    REFUSED,
    SIMPLE,
    arrow_name,
    storage_schema,
    storage_type,
    type_name,
)

__all__ = [
    "TypeSyntaxError",
    "arrow_name",
    "check_name",
    "parse_schema",
    "parse_type",
    "storage_schema",
    "storage_type",
    "type_name",
]

_TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<word>[^\W\d]\w*)|(?P<number>\d+)|(?P<name>`(?:[^`]|``)*`)"
    r"|(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|(?P<mark>[<>(),:])",
    re.DOTALL,
)
_MAX_DEPTH = 32
# Parquet columns of a table without column mapping may not be named with these.
_FORBIDDEN_IN_NAMES = " ,;{}()\n\t="


class TypeSyntaxError(ValueError):
    """A type name or schema that cannot be read; `position` is the offset in `text`, from 0.

    `index` is the number of the field in a list of fields, or None for a single type or DDL.
    """

    def __init__(self, message: str, text: str, position: int, index: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.text = text
        self.position = position
        self.index = index


def parse_type(text: str) -> pa.DataType:
    """Read one type: `Utf8`, `bigint`, `decimal(10,2)`, `array<struct<a: int>>`."""
    reader = _Reader(text)
    type_ = reader.type(0)
    reader.end("the end of the type")
    return type_


def parse_schema(schema: str | Sequence[Mapping[str, object]]) -> pa.Schema:
    """Read a schema: Spark DDL, or a list of `{name, data_type, nullable}`."""
    if isinstance(schema, str):
        reader = _Reader(schema)
        fields = reader.fields(0, until=None)
        reader.end("',' or the end of the schema")
        return pa.schema(fields)
    fields = []
    seen: dict[str, str] = {}
    for index, entry in enumerate(schema):
        name, text = str(entry["name"]), str(entry["data_type"])
        try:
            check_name(name, seen, name, 0)
            fields.append(pa.field(name, parse_type(text), bool(entry.get("nullable", True))))
        except TypeSyntaxError as error:
            raise TypeSyntaxError(error.message, error.text, error.position, index) from None
    if not fields:
        raise TypeSyntaxError("a schema needs at least one column", "", 0)
    return pa.schema(fields)


def check_name(name: str, seen: dict[str, str], text: str, position: int) -> None:
    """Refuse a column name that a Delta table cannot have, or that is there already; note it in `seen`."""
    bad = [c for c in name if c in _FORBIDDEN_IN_NAMES]
    if not name:
        raise TypeSyntaxError("a column needs a name", text, position)
    if bad:
        raise TypeSyntaxError(f"a Delta column name cannot contain {bad[0]!r}: {name!r}", text, position)
    if name.lower() in seen:
        other = seen[name.lower()]
        also = "" if other == name else f" (as {other!r}; Delta ignores case)"
        raise TypeSyntaxError(f"the column {name!r} is there twice{also}", text, position)
    seen[name.lower()] = name


class _Token(NamedTuple):
    kind: str
    text: str
    position: int


class _Reader:
    """A recursive reader over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[_Token] = []
        self.at = 0
        position = 0
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                what = "a quote that is not closed" if text[position] in "`'\"" else repr(text[position])
                self.fail(f"{what} cannot stand here", position)
            if match.lastgroup != "space":
                self.tokens.append(_Token(str(match.lastgroup), match.group(), position))
            position = match.end()
        self.tokens.append(_Token("end", "", len(text)))

    def fail(self, message: str, position: int) -> NoReturn:
        start = max(0, position - 30)
        excerpt = (
            self.text if len(self.text) <= 60 else "…" * (start > 0) + self.text[start : start + 60] + "…"
        )
        where = f" (at character {position + 1} of {excerpt!r})" if self.text.strip() else ""
        raise TypeSyntaxError(message + where, self.text, position)

    def expected(self, what: str) -> NoReturn:
        token = self.tokens[self.at]
        found = f"found {token.text!r}" if token.kind != "end" else "it ends here"
        self.fail(f"expected {what}, {found}", token.position)

    def take(self, text: str) -> bool:
        """Step over this mark or word, if it is the next."""
        token = self.tokens[self.at]
        if token.kind in ("word", "mark") and token.text.lower() == text:
            self.at += 1
            return True
        return False

    def need(self, mark: str, after: str) -> None:
        if not self.take(mark):
            self.expected(f"{mark!r} {after}")

    def end(self, what: str) -> None:
        if self.tokens[self.at].kind != "end":
            self.expected(what)

    def type(self, depth: int) -> pa.DataType:
        token = self.tokens[self.at]
        if depth > _MAX_DEPTH:
            self.fail(f"types may be nested {_MAX_DEPTH} deep", token.position)
        if token.kind != "word":
            self.expected("a type")
        self.at += 1
        name = token.text.lower()
        if name == "array":
            self.need("<", "after array")
            element = self.type(depth + 1)
            self.need(">", "after the type of the elements")
            return pa.list_(pa.field("element", element))
        if name == "map":
            return self.map(depth)
        if name == "struct":
            self.need("<", "after struct")
            fields = self.fields(depth, until=">")
            self.need(">", "or ',' after a field")
            return pa.struct(fields)
        if name in ("decimal", "numeric", "dec", "decimal128"):
            return self.decimal(token)
        if name in SIMPLE:
            return SIMPLE[name]
        return self.unknown(token)

    def map(self, depth: int) -> pa.DataType:
        self.need("<", "after map")
        position = self.tokens[self.at].position
        key = self.type(depth + 1)
        if not pa.types.is_string(key):
            self.fail(f"the keys of a map are strings, not {type_name(key)}", position)
        self.need(",", "after the type of the keys")
        value = self.type(depth + 1)
        self.need(">", "after the type of the values")
        return pa.map_(key, value)

    def decimal(self, token: _Token) -> pa.DataType:
        precision, scale = 10, 0
        if self.take("("):
            precision = self.number("a precision")
            scale = self.number("a scale") if self.take(",") else 0
            self.need(")", "after the scale")
        elif token.text.lower() == "decimal128":
            self.expected("'(precision,scale)' after Decimal128")
        if not 1 <= precision <= 38:
            self.fail(f"a decimal has 1 to 38 digits, not {precision}", token.position)
        if scale > precision:
            self.fail(f"a decimal's scale is at most its precision: {scale} > {precision}", token.position)
        return pa.decimal128(precision, scale)

    def number(self, what: str) -> int:
        token = self.tokens[self.at]
        if token.kind != "number" or len(token.text) > 9:
            self.expected(f"{what} as a whole number")
        self.at += 1
        return int(token.text)

    def fields(self, depth: int, until: str | None) -> list[pa.Field]:
        fields: list[pa.Field] = []
        seen: dict[str, str] = {}
        while True:
            token = self.tokens[self.at]
            if token.kind not in ("word", "name"):
                self.expected("a column name" if until is None else "a field name")
            self.at += 1
            name = token.text if token.kind == "word" else token.text[1:-1].replace("``", "`")
            try:
                check_name(name, seen, self.text, token.position)
            except TypeSyntaxError as error:
                self.fail(error.message, token.position)
            self.take(":")
            type_ = self.type(depth + 1)
            nullable, metadata = self.constraints()
            fields.append(pa.field(name, type_, nullable, metadata))
            if not self.take(","):
                return fields

    def constraints(self) -> tuple[bool, dict[str, str] | None]:
        nullable, metadata = True, None
        if self.take("not"):
            if not self.take("null"):
                self.expected("NULL after NOT")
            nullable = False
        if self.take("comment"):
            token = self.tokens[self.at]
            if token.kind != "text":
                self.expected("a quoted text after COMMENT")
            self.at += 1
            metadata = {"comment": re.sub(r"\\(.)", r"\1", token.text[1:-1], flags=re.DOTALL)}
        return nullable, metadata

    def unknown(self, token: _Token) -> NoReturn:
        name = token.text.lower()
        if name in REFUSED:
            self.fail(f"the type {token.text} is not supported: {REFUSED[name]}", token.position)
        nearest = ELSEWHERE.get(name)
        if nearest is None:
            close = difflib.get_close_matches(name, KNOWN, n=1, cutoff=0.5)
            nearest = KNOWN[close[0]] if close else None
        hint = f"did you mean {nearest}?" if nearest else "for example string, bigint, double, timestamp"
        self.fail(f"there is no type {token.text!r}: {hint}", token.position)
