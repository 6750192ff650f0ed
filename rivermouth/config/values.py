"""The kinds of value a config key takes, beyond those pydantic brings."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError

_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*(ms|s|m|h)?\s*")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, None: 1.0}
_DURATION_FORMS = "write 5s, 500ms, 1m or 1h; a plain number is seconds"


@dataclass(frozen=True)
class DefaultText:
    """What the reference says a key's default is, where the default is worked out."""

    text: str


def problem(code: str, message: str, *, key: str | None = None, hint: str = "") -> PydanticCustomError:
    """An error for a model's validator to raise: with a code, at a key of that model, with a hint."""
    context: dict[str, Any] = {"hint": hint}
    if key is not None:
        context["key"] = key
    return PydanticCustomError(code, "{said}", {**context, "said": message})


def parse_duration(value: object) -> timedelta:
    """Read `5s`, `500ms`, `1m`, `1h` or a number of seconds."""
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
    elif isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise problem("InvalidValue", "expected a duration", hint=_DURATION_FORMS)
    elif isinstance(value, str):
        match = _DURATION.fullmatch(value)
        if match is None:
            raise problem("InvalidValue", "expected a duration", hint=_DURATION_FORMS)
        seconds = float(match[1]) * _UNITS[match[2]]
    else:
        seconds = float(value)
    if not math.isfinite(seconds) or not 0 <= seconds <= 366 * 86400:
        raise problem("InvalidValue", "a duration is between 0 and a year")
    return timedelta(seconds=seconds)


def format_duration(value: timedelta) -> str:
    """The shortest way to write a duration: `1m`, `5s`, `500ms`."""
    milliseconds = round(value.total_seconds() * 1000)
    for unit, size in (("h", 3_600_000), ("m", 60_000), ("s", 1000)):
        if milliseconds and milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms" if milliseconds else "0s"


Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "minimum": 0},
                {"type": "string", "pattern": r"^\s*(\d+(\.\d+)?|\.\d+)\s*(ms|s|m|h)?\s*$"},
            ]
        }
    ),
]
"""A length of time: `5s`, `500ms`, `1m`, `1h`, or a number of seconds."""


def _refuse_truth(value: object) -> object:
    # pydantic would take `true` for 1.
    if isinstance(value, bool):
        raise problem("InvalidValue", "expected a number")
    return value


Integer = Annotated[int, BeforeValidator(_refuse_truth)]
"""A whole number; `true` is not one."""

Number = Annotated[float, BeforeValidator(_refuse_truth)]
"""A number; `true` is not one."""

Port = Annotated[Integer, Field(ge=0, le=65535)]
"""A TCP port; 0 lets the system choose one."""


def _texts(value: object) -> object:
    if not isinstance(value, Mapping):
        return value
    texts: dict[str, object] = {}
    for key, item in value.items():
        if isinstance(item, bool):
            texts[key] = "true" if item else "false"
        elif isinstance(item, (int, float)):
            texts[key] = str(item)
        elif isinstance(item, str):
            texts[key] = item
        elif isinstance(item, Mapping):
            inner = next(iter(item), "...")
            message = f"{key} must be text, a number or true/false, not a table"
            raise problem("InvalidValue", message, key=key, hint=f'quote a dotted key: "{key}.{inner}"')
        else:
            raise problem("InvalidValue", f"{key} must be text, a number or true/false", key=key)
    return texts


TextMap = Annotated[
    dict[str, str],
    BeforeValidator(_texts),
    WithJsonSchema({"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}),
]
"""Names and values handed on as text: `true` becomes "true", 4 becomes "4"."""
