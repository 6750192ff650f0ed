"""Which Delta tables can be appended to safely by writing the files ourselves. No I/O in here."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rivermouth.errors import UnsupportedFeature

# Features that ask nothing of a writer that only adds whole files, or that ask only what is checked below.
_HARMLESS = {
    "appendOnly",
    "changeDataFeed",
    "checkConstraints",
    "columnMapping",
    "deletionVectors",
    "generatedColumns",
    "identityColumns",
    "invariants",
    "timestampNtz",
    "typeWidening",
    "typeWidening-preview",
    "v2Checkpoint",
    "vacuumProtocolCheck",
}
# Features that others bring along: those others are the ones to name.
_COMPANIONS = {"domainMetadata"}
_COLUMN_FEATURES = {
    "delta.invariants": "invariants",
    "delta.generationExpression": "generatedColumns",
    "delta.identity.start": "identityColumns",
    "delta.identity.step": "identityColumns",
    "delta.columnMapping.id": "columnMapping",
}


def ensure_writable(
    writer_version: int,
    writer_features: Sequence[str] | None,
    properties: Mapping[str, str],
    schema_json: str,
    *,
    overwrite: bool,
) -> None:
    """Refuse a table with a feature that our writes would break, by that feature's name."""
    for feature, why in _problems(writer_version, writer_features or (), properties, schema_json, overwrite):
        raise UnsupportedFeature(f"the table has the feature {feature}: {why}")


def _problems(
    writer_version: int,
    writer_features: Sequence[str],
    properties: Mapping[str, str],
    schema_json: str,
    overwrite: bool,
) -> Iterator[tuple[str, str]]:
    if writer_version > 7:
        yield f"writer version {writer_version}", "it is newer than this release knows"
    for feature in sorted(writer_features, key=lambda name: name in _COMPANIONS):
        if feature not in _HARMLESS:
            yield feature, "rivermouth does not know how to keep it intact"
    if "delta.setTransactionRetentionDuration" in properties:
        yield (
            "delta.setTransactionRetentionDuration",
            "other writers' checkpoints would drop rivermouth's progress from the log",
        )
    if properties.get("delta.columnMapping.mode", "none") != "none":
        yield "columnMapping", "its files use other column names than its schema"
    for name in properties:
        if name.startswith("delta.constraints."):
            yield "checkConstraints", f"{name.removeprefix('delta.constraints.')!r} is not checked on append"
    for path, metadata in _columns(json.loads(schema_json), ""):
        for key, feature in _COLUMN_FEATURES.items():
            if key in metadata:
                yield feature, f"column {path!r} has {key}"
    if overwrite and properties.get("delta.appendOnly", "false").lower() == "true":
        yield "appendOnly", "write_mode overwrite would remove rows"
    if overwrite and "deletionVectors" in writer_features:
        yield "deletionVectors", "write_mode overwrite would have to remove files with deletion vectors"


def _columns(node: Any, prefix: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every column of a Delta schema in JSON, also the nested ones, with its metadata."""
    if not isinstance(node, dict):
        return
    for column in node.get("fields", ()):
        path = f"{prefix}{column['name']}"
        yield path, column.get("metadata", {})
        yield from _columns(column["type"], path + ".")
    for part in ("elementType", "keyType", "valueType"):
        yield from _columns(node.get(part), prefix)
