"""The names of types, Arrow's and Spark's, and what a Delta table stores for each."""

from __future__ import annotations

import re
from collections.abc import Mapping

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
SIMPLE = {name.lower(): type_ for name, type_ in (_SPARK_NAMES | _ARROW_NAMES).items()}
KNOWN = {name.lower(): name for name in (*_SPARK_NAMES, *_DECIMAL_NAMES, *_NESTED_NAMES, *_ARROW_NAMES)}
# What people call a type elsewhere.
ELSEWHERE = {
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
REFUSED = {
    "varchar": "a Delta table does not enforce a length; use string",
    "char": "a Delta table does not enforce a length; use string",
    "interval": "a Delta table cannot store an interval; use bigint and a unit",
    "variant": "variants are not written; keep the JSON text as string",
    "void": "no value could ever be stored in it; leave the column out",
    "null": "no value could ever be stored in it; leave the column out",
    "time": "a Delta table cannot store a time of day; use string or bigint",
    "date64": "a Delta date is a whole day; use Date32 or Timestamp",
}


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
