"""docs/config.md and the JSON Schema say what the models say."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from rivermouth import sources
from rivermouth.config.json_schema import json_schema
from rivermouth.config.load import load
from rivermouth.config.model import (
    ColumnConfig,
    DeltaLakeConfig,
    Model,
    PipelineConfig,
    SinkConfig,
    SourceConfig,
    SparkConfig,
)
from rivermouth.config.reference import insert

DOCS = Path(__file__).parents[2] / "docs" / "config.md"
PARTS = (PipelineConfig, SparkConfig, SourceConfig, SinkConfig, DeltaLakeConfig, ColumnConfig)


def test_the_key_tables_are_up_to_date() -> None:
    written = DOCS.read_text(encoding="utf-8")
    made = insert(written, sources.models())
    if os.environ.get("RIVERMOUTH_WRITE_DOCS"):
        DOCS.write_text(made, encoding="utf-8")
        written = made
    assert written == made, "run the test once with RIVERMOUTH_WRITE_DOCS=1"


def test_every_key_is_documented_and_every_documented_key_exists() -> None:
    documented = re.findall(
        r"^\| `([a-z_0-9]+)` \| .* \| .* \| .+ \|$", DOCS.read_text(encoding="utf-8"), re.MULTILINE
    )
    models: list[type[Model]] = [*PARTS, *sources.models().values()]
    keys = [field.alias or name for model in models for name, field in model.model_fields.items()]
    assert sorted(documented) == sorted(keys)


@pytest.mark.parametrize("model", [*PARTS, *sources.models().values()])
def test_every_key_has_a_description(model: type[Model]) -> None:
    for name, field in model.model_fields.items():
        assert field.description, name


def test_the_example_is_a_valid_file(tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    file = tmp_path / "example.yaml"
    file.write_text(example)
    assert load(file, sources.models(), {}).pipeline == "shop"


def nodes(schema: Any) -> list[dict[str, Any]]:
    """Every subschema of a schema."""
    found: list[dict[str, Any]] = []
    if isinstance(schema, dict):
        found.append(schema)
        for key, value in schema.items():
            if key in ("properties", "$defs"):
                found += [node for part in value.values() for node in nodes(part)]
            elif key in ("anyOf", "allOf"):
                found += [node for part in value for node in nodes(part)]
            elif key in ("items", "additionalProperties", "if", "then", "propertyNames"):
                found += nodes(value)
    return found


# The words of draft 2020-12 that may stand in our schema.
WORDS = {
    *("$schema", "$defs", "$ref", "title", "description", "default", "type", "enum", "const", "format"),
    *(
        "properties",
        "required",
        "additionalProperties",
        "propertyNames",
        "items",
        "anyOf",
        "allOf",
        "if",
        "then",
    ),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "pattern"),
    *("minLength", "minItems", "minProperties"),
}


def test_the_json_schema_uses_only_words_of_its_dialect() -> None:
    schema = json.loads(json.dumps(json_schema(sources.models())))
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    for node in nodes(schema):
        assert set(node) <= WORDS
        if "$ref" in node:
            assert node["$ref"].removeprefix("#/$defs/") in schema["$defs"]
        if "pattern" in node:
            re.compile(node["pattern"])


def test_the_json_schema_describes_every_key(connectors: dict[str, type[Model]]) -> None:
    schema = json_schema(connectors)
    for part in [schema, *schema["$defs"].values()]:
        for name, key in part["properties"].items():
            description = key.get("description") or schema["$defs"][key["$ref"].split("/")[-1]]["description"]
            assert description, name


def test_the_json_schema_depends_on_the_connector(connectors: dict[str, type[Model]]) -> None:
    schema = json_schema(connectors)
    source = schema["$defs"]["SourceConfig"]
    assert source["properties"]["connector"]["anyOf"][0] == {"enum": ["kafka", "generator"]}
    cases = {case["if"]["properties"]["connector"]["const"]: case["then"] for case in source["allOf"]}
    assert cases["kafka"] == {
        "properties": {"config": {"$ref": "#/$defs/KafkaLike"}},
        "required": ["config"],
    }
    assert cases["generator"]["required"] == []
    assert schema["required"] == ["sources", "sinks"]
    assert "Model" not in schema["$defs"]


def test_the_json_schema_lets_a_number_come_from_the_environment(connectors: dict[str, type[Model]]) -> None:
    port = json_schema(connectors)["properties"]["metrics_port"]
    number, variable = port["anyOf"]
    assert number == {"type": "integer", "minimum": 0, "maximum": 65535}
    assert re.search(variable["pattern"], "${PORT:-9090}")
    assert json_schema(connectors)["properties"]["shutdown_timeout"]["default"] == "30s"
