"""What must hold between the keys of a sink; each finding names the key it belongs to.

The functions take validated values by field name, and cope with any of them missing, because a file is
checked as far as possible even when some of its values are wrong.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

from rivermouth.config.uri import local_path
from rivermouth.errors import InvalidTableUri

Path = tuple["str | int", ...]
"""Where in the config: keys and list positions from the root, or from the part that is checked."""

FIXED_COLUMNS: dict[str, dict[str, str]] = {
    "string": {"data": "string"},
    "int64": {"value": "bigint"},
    "bytes": {"data": "string", "size": "bigint"},
    "envelope": {"data": "string", "event_type": "string", "timestamp": "timestamp", "stream": "string"},
}
"""The columns of the formats that have no schema, with their Spark types."""

_RETENTION = "delta.setTransactionRetentionDuration"


class Finding(NamedTuple):
    """A problem at a path. `{value}` in the message stands for the value there, so that it can be hidden."""

    path: Path
    code: str
    message: str
    hint: str = ""
    at_key: bool = False  # whether the key is to blame and not its value

    def text(self) -> str:
        """The finding as a sentence, without the value."""
        where = ".".join(map(str, self.path))
        said = self.message.replace("{value}", "the value")
        return (f"{where}: " if where else "") + said + (f" ({self.hint})" if self.hint else "")

    def under(self, *parents: str | int) -> Finding:
        """The same finding, seen from further up."""
        return self._replace(path=(*parents, *self.path))


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant."""
    by_lower = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[close[0]] if close else None


def suggest(word: str, known: Collection[str], listing: str) -> str:
    """A hint for an unknown word: the nearest known one, or all of them."""
    close = nearest(word, known)
    return f"did you mean {close}?" if close else f"{listing}: {', '.join(known) or 'none'}"


def delta_sink(values: Mapping[str, Any], given: Collection[str]) -> list[Finding]:
    """Check the config of one delta-lake sink."""
    found = [*_uri("table_uri", values, given), *_uri("dead_letter_uri", values, given)]
    columns, problems = _columns(values)
    found += problems
    found += _partitioning(values.get("partition_columns") or [], columns)
    found += _batches(values, given)
    intervals = [k for k in ("flush_interval", "flush_interval_secs", "flush_interval_ms") if k in given]
    for extra in intervals[1:]:
        found.append(
            Finding(
                (extra,),
                "ConflictingKeys",
                f"{intervals[0]} is given as well",
                f"keep one of {', '.join(intervals)}",
                True,
            )
        )
    for name in values.get("table_properties") or {}:
        if name.lower() == _RETENTION.lower():
            message = f"{_RETENTION} would let the table forget which records it holds"
            found.append(Finding(("table_properties", name), "InvalidValue", message, "remove it", True))
    return found


def _uri(key: str, values: Mapping[str, Any], given: Collection[str]) -> Iterable[Finding]:
    if key not in given or not isinstance(values.get(key), str):
        return
    try:
        local_path(values[key])
    except InvalidTableUri as error:
        yield Finding((key,), error.code, f"{key}: {error.message}", error.remedy)


def _batches(values: Mapping[str, Any], given: Collection[str]) -> Iterable[Finding]:
    batch, most = values.get("batch_size"), values.get("max_batch_size")
    if batch is None or most is None or batch <= most:
        return
    if "batch_size" not in given:
        hint = f"raise max_batch_size, or set a batch_size below the default {batch}"
        yield Finding(
            ("max_batch_size",),
            "InvalidValue",
            f"max_batch_size {{value}} is less than batch_size ({batch})",
            hint,
        )
    else:
        hint = (
            "lower batch_size"
            if "max_batch_size" in given
            else "set max_batch_size as well, or lower batch_size"
        )
        yield Finding(
            ("batch_size",),
            "InvalidValue",
            f"batch_size {{value}} is more than max_batch_size ({most})",
            hint,
        )


def _columns(values: Mapping[str, Any]) -> tuple[dict[str, Any] | None, list[Finding]]:
    """The event's columns with their types, or None when they cannot be known."""
    if "schema_type" not in values or "fields" not in values:
        return None, []
    kind, fields = values["schema_type"], values["fields"]
    if kind in FIXED_COLUMNS:
        if fields is None:
            return dict(FIXED_COLUMNS[kind]), []
        columns = ", ".join(FIXED_COLUMNS[kind])
        message = f"schema_type {kind} has fixed columns ({columns}) and takes no schema"
        return None, [
            Finding(("schema",), "ConflictingKeys", message, "remove schema, or use schema_type json", True)
        ]
    if fields is None:
        message, hint = "schema_type json needs a schema", "add schema, or use schema_type envelope"
        return None, [Finding(("schema_type",), "MissingKey", message, hint)]
    return _declared_columns(fields)


def _declared_columns(fields: Any) -> tuple[dict[str, Any] | None, list[Finding]]:
    from rivermouth.config.types import TypeSyntaxError, check_name, parse_schema, parse_type

    if isinstance(fields, str):
        try:
            return {field.name: field.type for field in parse_schema(fields)}, []
        except TypeSyntaxError as error:
            return None, [Finding(("schema",), "InvalidSchema", error.message)]
    if not fields:
        return None, [Finding(("schema",), "InvalidSchema", "a schema needs at least one column", "", True)]
    columns: dict[str, Any] = {}
    found = []
    seen: dict[str, str] = {}
    for index, field in enumerate(fields):
        if field is None:  # reported already
            continue
        try:
            check_name(field.name, seen, field.name, 0)
        except TypeSyntaxError as error:
            found.append(Finding(("schema", index, "name"), "InvalidSchema", error.message))
        try:
            columns[field.name] = parse_type(field.data_type)
        except TypeSyntaxError as error:
            columns[field.name] = None  # known by name, so that partitioning by it is no second problem
            found.append(Finding(("schema", index, "data_type"), "InvalidSchema", error.message))
    return (None if None in fields else columns), found


def _partitioning(wanted: list[str], columns: dict[str, Any] | None) -> Iterable[Finding]:
    for index, name in enumerate(wanted):
        path = ("partition_columns", index)
        if name in wanted[:index]:
            yield Finding(path, "InvalidPartition", "{value} is there twice")
        elif columns is not None and name not in columns:
            hint = suggest(name, list(columns), "its columns are")
            yield Finding(path, "InvalidPartition", "{value} is not a column of the event", hint)
        elif columns is not None and (refusal := _cannot_partition(columns[name])):
            yield Finding(path, "InvalidPartition", f"{{value}} is {refusal}, which cannot be partitioned by")
    if columns and set(columns) <= set(wanted):
        message = "a table needs a column that it is not partitioned by"
        yield Finding(("partition_columns",), "InvalidPartition", message, "partition by fewer columns", True)


def _cannot_partition(type_: Any) -> str | None:
    if type_ is None or isinstance(type_, str):
        return None
    from pyarrow import types

    from rivermouth.config.types import type_name

    nested_or_binary = types.is_nested(type_) or types.is_binary(type_)
    return f"of type {type_name(type_)}" if nested_or_binary else None


def sink(values: Mapping[str, Any], given: Collection[str]) -> list[Finding]:
    """Check which topics a sink takes."""
    found = []
    topics: list[str] = values.get("topics") or []
    pattern = values.get("topic_pattern")
    if "topics" in given and "topic_pattern" in given:
        message, hint = "topics is given as well", "keep one of topics and topic_pattern"
        found.append(Finding(("topic_pattern",), "ConflictingKeys", message, hint, True))
    for index, topic in enumerate(topics):
        if topic in topics[:index]:
            found.append(Finding(("topics", index), "InvalidValue", "{value} is there twice"))
    if pattern is not None:
        try:
            re.compile(pattern)
        except re.error as error:
            message = f"{{value}} is not a regular expression: {error.msg}"
            found.append(Finding(("topic_pattern",), "InvalidValue", message))
    return found
