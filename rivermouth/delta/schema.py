"""Compares a table's columns with a sink's. Pure: it sees schemas, not tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from deltalake import Schema

from rivermouth.errors import SchemaMismatch


def to_delta(schema: pa.Schema) -> Schema:
    """The Delta schema of an event schema."""
    return Schema.from_arrow(schema)


def ensure_same(
    uri: str,
    table: Schema,
    table_partitions: Sequence[str],
    sink: pa.Schema,
    sink_partitions: Sequence[str],
) -> None:
    """Raise SchemaMismatch, with both sides shown, unless the sink's events fit the table as it is.

    The order of columns does not matter, and a column that is never null may be nullable in the table.
    """
    theirs = {f["name"]: f for f in json.loads(table.to_json())["fields"]}
    ours = {f["name"]: f for f in json.loads(to_delta(sink).to_json())["fields"]}
    lines = []
    for name in [*theirs, *(n for n in ours if n not in theirs)]:
        if name not in ours or name not in theirs or not _fits(ours[name], theirs[name]):
            lines.append(f"  {name}: table {_shown(theirs.get(name))}, sink {_shown(ours.get(name))}")
    if list(table_partitions) != list(sink_partitions):
        lines.append(f"  partition columns: table {list(table_partitions)}, sink {list(sink_partitions)}")
    if lines:
        raise SchemaMismatch(f"the table {uri} does not have the sink's columns:\n" + "\n".join(lines) + "\n")


def _fits(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    return (theirs["nullable"] or not ours["nullable"]) and _type_fits(ours["type"], theirs["type"])


def _type_fits(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, str) or isinstance(theirs, str):
        return bool(ours == theirs)
    if ours["type"] != theirs["type"]:
        return False
    if ours["type"] == "struct":
        left, right = ({f["name"]: f for f in side["fields"]} for side in (ours, theirs))
        return left.keys() == right.keys() and all(_fits(left[n], right[n]) for n in left)
    if ours["type"] == "array":
        return (theirs["containsNull"] or not ours["containsNull"]) and _type_fits(
            ours["elementType"], theirs["elementType"]
        )
    return (
        (theirs["valueContainsNull"] or not ours["valueContainsNull"])
        and _type_fits(ours["keyType"], theirs["keyType"])
        and _type_fits(ours["valueType"], theirs["valueType"])
    )


def _shown(column: dict[str, Any] | None) -> str:
    if column is None:
        return "has none"
    return _type_shown(column["type"]) + ("" if column["nullable"] else " not null")


def _type_shown(kind: Any) -> str:
    if isinstance(kind, str):
        return kind
    if kind["type"] == "struct":
        return "struct<" + ", ".join(f"{f['name']}: {_shown(f)}" for f in kind["fields"]) + ">"
    if kind["type"] == "array":
        return f"array<{_type_shown(kind['elementType'])}{'' if kind['containsNull'] else ' not null'}>"
    value = _type_shown(kind["valueType"]) + ("" if kind["valueContainsNull"] else " not null")
    return f"map<{_type_shown(kind['keyType'])}, {value}>"
