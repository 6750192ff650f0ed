"""The JSON Schema of a config file, for editors."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import models_json_schema

from rivermouth.config.model import Model, PipelineConfig, SourceConfig
from rivermouth.config.values import format_duration

DIALECT = "https://json-schema.org/draft/2020-12/schema"
# Any value but a table or list may come from the environment.
_VARIABLE = {"type": "string", "pattern": r"\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}"}


def json_schema(connectors: Mapping[str, type[Model]]) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a file that may use these source connectors."""
    models: list[type[Model]] = [PipelineConfig, SourceConfig, *connectors.values()]
    references, whole = models_json_schema([(model, "validation") for model in models], by_alias=True)
    definitions = whole["$defs"]
    definitions["SourceConfig"] = _source(
        definitions["SourceConfig"],
        {name: references[model, "validation"] for name, model in connectors.items()},
        {name for name, model in connectors.items() if _needs_keys(model)},
    )
    definitions.pop("Model", None)  # the empty base of the connectors' models
    root = definitions.pop("PipelineConfig")
    root["required"].remove("pipeline")  # the file's name stands in
    tidy: dict[str, Any] = _tidy({**root, "$defs": definitions})
    return {"$schema": DIALECT, "title": "rivermouth pipeline", **tidy}


def _needs_keys(model: type[Model]) -> bool:
    return any(field.is_required() for field in model.model_fields.values())


def _source(schema: dict[str, Any], references: dict[str, Any], needing: set[str]) -> dict[str, Any]:
    """Which keys `config` takes depends on `connector`."""
    cases = [
        {
            "if": {"properties": {"connector": {"const": name}}, "required": ["connector"]},
            "then": {"properties": {"config": reference}, "required": ["config"] if name in needing else []},
        }
        for name, reference in references.items()
    ]
    described = {name: {"description": part["description"]} for name, part in schema["properties"].items()}
    properties = {
        "connector": {**described["connector"], "enum": list(references)},
        "config": {**described["config"], "type": "object"},
    }
    return {**schema, "properties": properties, "required": ["connector"], "allOf": cases}


# pydantic leaves these as they are where a validator of ours comes first.
_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}


def _tidy(node: Any, *, name_map: bool = False) -> Any:
    """Drop generated titles, refuse nothing that `load` takes, take nothing that it refuses."""
    if isinstance(node, list):
        return [_tidy(item) for item in node]
    if not isinstance(node, dict):
        return node
    if name_map:  # the keys here are names of properties, not of the schema language
        return {name: _variable(_tidy(schema)) for name, schema in node.items()}
    tidy = {
        _BOUNDS.get(key, key): _tidy(value, name_map=key in ("properties", "$defs"))
        for key, value in node.items()
        if key not in ("title", "const", "enum", "default")
    }
    tidy.update({key: node[key] for key in ("const", "enum", "default") if node.get(key) is not None})
    if str(tidy.get("default", "")).startswith("PT"):
        tidy["default"] = format_duration(TypeAdapter(timedelta).validate_python(tidy["default"]))
    options = tidy.get("anyOf")
    if options:
        # `null` is how the models say "left out"; in a file a key without a value is an error.
        options = [option for option in options if option != {"type": "null"}]
        if len(options) == 1:
            del tidy["anyOf"]
            return {**options[0], **tidy}
        tidy["anyOf"] = options
    return tidy


def _variable(schema: dict[str, Any]) -> dict[str, Any]:
    """Let a number, a truth value or a choice also be `${NAME}`."""
    choice = "enum" in schema or schema.get("type") in ("integer", "number", "boolean")
    if choice:
        outer: dict[str, Any] = {key: schema[key] for key in ("description", "default") if key in schema}
        inner = {key: value for key, value in schema.items() if key not in outer}
        return {**outer, "anyOf": [inner, _VARIABLE]}
    if "anyOf" in schema and {"type": "string"} not in schema["anyOf"]:
        return {**schema, "anyOf": [*schema["anyOf"], _VARIABLE]}
    return schema
