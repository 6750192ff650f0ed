"""Formats: how the bytes of a record become the columns of an event."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rivermouth.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

    from rivermouth.formats.base import Format

SCHEMA_TYPES = ("json", "string", "int64", "bytes", "envelope")


def create(schema_type: str, schema: pa.Schema | None = None) -> Format:
    """The format of this name; `json` takes a schema (in decode types), the others have their own."""
    from rivermouth.formats.binary import Binary
    from rivermouth.formats.envelope import Envelope
    from rivermouth.formats.int64 import Int64
    from rivermouth.formats.json import Json
    from rivermouth.formats.text import Text

    if schema_type == "json":
        if schema is None:
            raise ConfigError("schema_type json needs a schema", hint="list the columns under schema")
        return Json(schema)
    fixed: dict[str, type[Format]] = {"string": Text, "int64": Int64, "bytes": Binary, "envelope": Envelope}
    if schema_type not in fixed:
        raise ConfigError(
            f"there is no schema_type {schema_type!r}", hint=f"one of {', '.join(SCHEMA_TYPES)}"
        )
    if schema is not None:
        raise ConfigError(f"schema_type {schema_type} has columns of its own", hint="leave schema out")
    return fixed[schema_type]()
