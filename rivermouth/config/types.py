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

_TIMESTAMP = pa.timestamp("us", tz="UTC")

# name in messages -> type; looked up without regard to case. The first name of a type is the one shown.
_SPARK_NAMES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "tinyint": pa.int8(),
    "byte": pa.int8(),
    "smallint": pa.int16(),
    "short": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "timestamp": _TIMESTAMP,
    "timestamp_ltz": _TIMESTAMP,
    "timestamp_ntz": pa.timestamp("us"),
    "date": pa.date32(),
    "binary": pa.binary(),
}
_ARROW_NAMES: dict[str, pa.DataType] = {
    "Utf8": pa.string(),
    "LargeUtf8": pa.string(),
    "Int8": pa.int8(),
    "Int16": pa.int16(),
    "Int32": pa.int32(),
    "Int64": pa.int64(),
    "UInt8": pa.uint8(),
    "UInt16": pa.uint16(),
    "UInt32": pa.uint32(),
    "UInt64": pa.uint64(),
    "Float32": pa.float32(),
    "Float64": pa.float64(),
    "Boolean": pa.bool_(),
    "Timestamp": _TIMESTAMP,
    "Date32": pa.date32(),
    "Binary": pa.binary(),
}
_DECIMAL_NAMES = ("decimal", "numeric", "dec", "Decimal128")
_NESTED_NAMES = ("array", "map", "struct")
_SIMPLE = {name.lower(): type_ for name, type_ in (_SPARK_NAMES | _ARROW_NAMES).items()}
_KNOWN = {name.lower(): name for name in (*_SPARK_NAMES, *_DECIMAL_NAMES, *_NESTED_NAMES, *_ARROW_NAMES)}
# What people call a type elsewhere.
_ELSEWHERE = {
    "str": "string",
    "text": "string",
    "uuid": "string",
    "json": "string",
    "bool": "boolean",
    "datetime": "timestamp",
    "number": "double",
    "bytes": "binary",
    "list": "array",
    "object": "struct",
    "row": "struct",
}
_REFUSED = {
    "varchar": "a Delta table does not enforce a length; use string",
    "char": "a Delta table does not enforce a length; use string",
    "interval": "a Delta table cannot store an interval; use bigint and a unit",
    "variant": "variants are not written; keep the JSON text as string",
    "void": "no value could ever be stored in it; leave the column out",
    "null": "no value could ever be stored in it; leave the column out",
    "time": "a Delta table cannot store a time of day; use string or bigint",
    "date64": "a Delta date is a whole day; use Date32 or Timestamp",
}
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


def storage_type(type_: pa.DataType) -> pa.DataType:
    """The type a Delta table stores for a decoded type: unsigned integers become the next wider one."""
    if pa.types.is_struct(type_):
        return pa.struct([_storage_field(type_.field(i)) for i in range(type_.num_fields)])
    if pa.types.is_list(type_):
        return pa.list_(_storage_field(type_.value_field))
    if pa.types.is_map(type_):
        return pa.map_(_storage_field(type_.key_field), _storage_field(type_.item_field))
    return _WIDER.get(type_, type_)


_WIDER: dict[pa.DataType, pa.DataType] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}


def storage_schema(schema: pa.Schema) -> pa.Schema:
    """The columns a Delta table stores for a decoded schema."""
    return pa.schema([_storage_field(field) for field in schema])


def _storage_field(field: pa.Field) -> pa.Field:
    return field.with_type(storage_type(field.type))


def type_name(type_: pa.DataType) -> str:
    """The type as Spark writes it, or by its Arrow name where Spark has none; `parse_type` reads it back."""
    if pa.types.is_struct(type_):
        inner = (type_.field(i) for i in range(type_.num_fields))
        return "struct<" + ", ".join(_field_name(f) for f in inner) + ">"
    if pa.types.is_list(type_):
        return f"array<{type_name(type_.value_type)}>"
    if pa.types.is_map(type_):
        return f"map<{type_name(type_.key_type)}, {type_name(type_.item_type)}>"
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    return _name_in(_SPARK_NAMES | _ARROW_NAMES, type_)


def arrow_name(type_: pa.DataType) -> str:
    """The type by its Arrow name, as in `Int32`; nested types and others as Spark writes them."""
    if pa.types.is_decimal(type_):
        return f"Decimal128({type_.precision},{type_.scale})"
    if pa.types.is_nested(type_):
        return type_name(type_)
    return _name_in(_ARROW_NAMES | _SPARK_NAMES, type_)


def _name_in(names: Mapping[str, pa.DataType], type_: pa.DataType) -> str:
    return next((name for name, known in names.items() if known == type_), str(type_))


def _field_name(field: pa.Field) -> str:
    name = (
        field.name if re.fullmatch(r"[^\W\d]\w*", field.name) else "`" + field.name.replace("`", "``") + "`"
    )
    return f"{name}: {type_name(field.type)}" + ("" if field.nullable else " NOT NULL")


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
        if name in _SIMPLE:
            return _SIMPLE[name]
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
        if name in _REFUSED:
            self.fail(f"the type {token.text} is not supported: {_REFUSED[name]}", token.position)
        nearest = _ELSEWHERE.get(name)
        if nearest is None:
            close = difflib.get_close_matches(name, _KNOWN, n=1, cutoff=0.5)
            nearest = _KNOWN[close[0]] if close else None
        hint = f"did you mean {nearest}?" if nearest else "for example string, bigint, double, timestamp"
        self.fail(f"there is no type {token.text!r}: {hint}", token.position)
