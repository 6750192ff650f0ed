"""The reference of all keys, in Markdown, made from the models."""

from __future__ import annotations

import re
import types
from collections.abc import Mapping
from datetime import timedelta
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from rivermouth.config.model import (
    ColumnConfig,
    DeltaLakeConfig,
    Model,
    PipelineConfig,
    SinkConfig,
    SourceConfig,
    SparkConfig,
)
from rivermouth.config.values import DefaultText, format_duration

_PARTS: list[tuple[str, type[Model]]] = [
    ("the file", PipelineConfig),
    ("`spark`", SparkConfig),
    ("`sources.<name>`", SourceConfig),
    ("`sinks.<name>`", SinkConfig),
    ("`sinks.<name>.config`", DeltaLakeConfig),
    ("`schema[]`", ColumnConfig),
]
_MARKED = re.compile(r"(<!-- keys: begin -->\n).*?(<!-- keys: end -->)", re.DOTALL)


def reference(connectors: Mapping[str, type[Model]]) -> str:
    """Every key in tables: first those of the file, then those of each source connector."""
    parts = list(_PARTS)
    parts += [(f"`sources.<name>.config` of `{name}`", model) for name, model in connectors.items()]
    return "\n".join(_table(title, model) for title, model in parts)


def insert(text: str, connectors: Mapping[str, type[Model]]) -> str:
    """The text with its key tables made anew."""
    return _MARKED.sub(lambda match: match[1] + reference(connectors) + match[2], text)


def _table(title: str, model: type[Model]) -> str:
    lines = [f"### Keys of {title}", "", "| key | type | default | meaning |", "|---|---|---|---|"]
    for name, field in model.model_fields.items():
        cells = [
            f"`{field.alias or name}`",
            _type(field.annotation),
            _default(field),
            field.description or "",
        ]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _default(field: FieldInfo) -> str:
    for note in field.metadata:
        if isinstance(note, DefaultText):
            return note.text
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is None:
        return ""
    if isinstance(value, Model):
        return ""
    if isinstance(value, timedelta):
        return f"`{format_duration(value)}`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, list):
        return "`[" + ", ".join(map(str, value)) + "]`"
    if isinstance(value, Enum):
        return f"`{value.value}`"
    if hasattr(value, "isoformat"):
        return f"`{value.isoformat().replace('+00:00', 'Z')}`"
    return f"`{value}`"


_NAMES: dict[Any, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    timedelta: "duration",
}


def _type(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type(arguments[0])
    if origin is Literal:
        return ", ".join(f"`{choice}`" for choice in arguments)
    if origin in (Union, types.UnionType):
        return " or ".join(_type(argument) for argument in arguments if argument is not type(None))
    if origin is list:
        return f"list of {_type(arguments[0])}"
    if origin in (dict, Mapping):
        return f"map to {_type(arguments[1])}"
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return "keys, see below" if annotation is not ColumnConfig else "columns"
    return _NAMES.get(annotation, getattr(annotation, "__name__", str(annotation)))
