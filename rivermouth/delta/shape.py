"""The shape of what is written: only types Delta has, only the table's columns, no null where none may be."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.errors import DeltaWriterFailed


def check_schema(schema: pa.Schema) -> None:
    """Refuse a schema with a type that a Delta table cannot store."""
    for each in schema:
        if not _is_storable(each.type):
            raise DeltaWriterFailed(f"column {each.name!r} has type {each.type}, which Delta does not have")


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch in exactly the table's columns; only spellings of the same Delta type are converted."""
    if batch.schema.equals(schema):
        return batch
    if set(batch.schema.names) != set(schema.names) or batch.num_columns != len(schema.names):
        raise DeltaWriterFailed(
            f"the rows have columns {', '.join(batch.schema.names)}; the table has {', '.join(schema.names)}"
        )
    columns = []
    for each in schema:
        column = batch.column(each.name)
        if not column.type.equals(each.type):
            if not _is_same(column.type, each.type):
                raise DeltaWriterFailed(f"column {each.name!r} is {column.type}; the table has {each.type}")
            column = column.cast(each.type)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def check_nulls(batch: pa.RecordBatch) -> None:
    """Refuse a null where the schema allows none, at any depth."""
    for each, column in zip(batch.schema, batch.columns, strict=True):
        _check_nulls(column, each, each.name)


def _check_nulls(values: pa.Array, field: pa.Field, path: str) -> None:
    if not field.nullable and values.null_count:
        raise DeltaWriterFailed(f"column {path} is required and {values.null_count} of its values are null")
    kind = values.type
    if not _has_required(kind):
        return
    if pa.types.is_struct(kind):
        present = values.drop_null() if values.null_count else values
        for index, child in enumerate(kind):
            _check_nulls(pc.struct_field(present, index), child, f"{path}.{child.name}")
    elif pa.types.is_map(kind):
        entries = values.drop_null() if values.null_count else values
        flat = pc.list_flatten(entries.cast(pa.list_(pa.struct([kind.key_field, kind.item_field]))))
        _check_nulls(pc.struct_field(flat, 1), kind.item_field, f"{path}.value")
    else:
        _check_nulls(pc.list_flatten(values), kind.value_field, f"{path}.element")


def _has_required(kind: pa.DataType) -> bool:
    """Whether a type has anything inside that may not be null; the keys of maps never are."""
    if pa.types.is_map(kind):
        return not kind.item_field.nullable or _has_required(kind.item_type)
    if not pa.types.is_nested(kind):
        return False
    inner = [kind.field(index) for index in range(kind.num_fields)]
    return any(not each.nullable or _has_required(each.type) for each in inner)


def _is_storable(kind: pa.DataType) -> bool:
    types = pa.types
    if types.is_nested(kind):
        known = types.is_struct(kind) or types.is_map(kind) or _is_list(kind)
        inner = [kind.field(index).type for index in range(kind.num_fields)]
        return known and bool(inner) and all(_is_storable(each) for each in inner)
    if types.is_timestamp(kind):
        return bool(kind.unit == "us")
    if types.is_decimal(kind):
        return bool(types.is_decimal128(kind) and 0 <= kind.scale <= kind.precision)
    tests = (
        types.is_boolean,
        types.is_signed_integer,
        types.is_float32,
        types.is_float64,
        types.is_date32,
        _is_text,
        _is_bytes,
    )
    return any(test(kind) for test in tests)


def _is_same(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether two Arrow types are the same Delta type: other offsets, time zone or inner names."""
    if one.equals(other):
        return True
    if pa.types.is_timestamp(one) and pa.types.is_timestamp(other):
        return one.unit == other.unit and (one.tz is None) == (other.tz is None)
    if pa.types.is_map(one) and pa.types.is_map(other):
        return _is_same(one.key_type, other.key_type) and _is_same(one.item_type, other.item_type)
    if _is_list(one) and _is_list(other):
        return _is_same(one.value_type, other.value_type)
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        return [each.name for each in one] == [each.name for each in other] and all(
            _is_same(mine.type, yours.type) for mine, yours in zip(one, other, strict=True)
        )
    return (_is_text(one) and _is_text(other)) or (_is_bytes(one) and _is_bytes(other))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
