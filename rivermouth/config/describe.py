"""Says what a pipeline will do, in a few lines a person reads before starting it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rivermouth.config.checks import FIXED_COLUMNS, Path
from rivermouth.config.load import Loaded
from rivermouth.config.model import DeltaLakeConfig, SinkConfig, SourceConfig
from rivermouth.config.redact import redact
from rivermouth.config.values import format_duration

Facts = list[tuple[str, str]]
"""What is said of one part: label and sentence."""


def describe(loaded: Loaded) -> Iterator[tuple[str, Facts]]:
    """The parts of a valid pipeline, each with its facts.

    A value that came from the environment is shown as it stands in the file: `${NAME}`.
    """
    config, shown = loaded.config, _Shown(loaded.templates)
    assert config is not None, "only a valid config is described"
    for name, source in config.sources.items():
        yield f"source {name}", _source(source, shown, ("sources", name))
    for name, sink in config.sinks.items():
        yield f"sink {name}", _sink(sink, shown, ("sinks", name))
    facts = [("pipeline", shown(("pipeline",), config.pipeline))]
    master = shown(("spark", "master"), config.spark.master)
    properties = [f"{key}={shown(('spark', 'conf', key), value)}" for key, value in config.spark.conf.items()]
    facts.append(("spark", ", ".join([master, *properties])))
    if config.metrics_port is not None:
        host = shown(("metrics_host",), config.metrics_host)
        port = shown(("metrics_port",), config.metrics_port)
        where = f"http://{host}:{port}/metrics" if port != "0" else f"{host}, any free port"
        facts.append(("metrics", where))
    facts.append(
        ("stop", f"takes at most {shown(('shutdown_timeout',), format_duration(config.shutdown_timeout))}")
    )
    yield "run", facts


class _Shown:
    """Shows values without their secrets."""

    def __init__(self, templates: dict[Path, str]) -> None:
        self.templates = templates

    def __call__(self, path: Path, value: Any) -> str:
        if path in self.templates:
            return str(redact(self.templates[path], str(path[-1])))
        key = next((step for step in reversed(path) if isinstance(step, str)), "")
        if isinstance(value, dict) and value:
            items = (f"{name}: {self((*path, name), item)}" for name, item in value.items())
            return "{" + ", ".join(items) + "}"
        if isinstance(value, (list, tuple)):
            return ", ".join(self((*path, index), item) for index, item in enumerate(value))
        hidden = redact(value, key)
        return str(hidden).lower() if isinstance(hidden, bool) else str(hidden)


def _source(source: SourceConfig, shown: _Shown, path: Path) -> Facts:
    facts = [("connector", shown((*path, "connector"), source.connector))]
    for name, field in type(source.config).model_fields.items():
        if name in source.config.model_fields_set:
            key = field.alias or name
            facts.append((key, shown((*path, "config", key), source.config.model_dump(mode="json")[name])))
    return facts


def _sink(sink: SinkConfig, shown: _Shown, path: Path) -> Facts:
    config, inside = sink.config, (*path, "config")
    if sink.topics is not None:
        topics = f"topics {shown((*path, 'topics'), sink.topics)}"
    elif sink.topic_pattern is not None:
        topics = f"topics like {shown((*path, 'topic_pattern'), sink.topic_pattern)}"
    else:
        topics = "all topics"
    facts = [
        ("reads", f"{topics} of {shown((*path, 'source'), sink.source)}"),
        ("writes", _table(config, shown, inside)),
        ("columns", f"{config.schema_type}: {_columns(config, shown, inside)}"),
    ]
    if config.partition_columns:
        facts.append(("partitions", f"by {shown((*inside, 'partition_columns'), config.partition_columns)}"))
    if config.table_properties:
        facts.append(("properties", shown((*inside, "table_properties"), config.table_properties)[1:-1]))
    facts.append(("epoch", _epoch(config, shown, inside)))
    facts.append(("bad record", _bad_record(config, shown, inside)))
    return facts


def _epoch(config: DeltaLakeConfig, shown: _Shown, path: Path) -> str:
    given = config.model_fields_set & {"flush_interval_secs", "flush_interval_ms"}
    interval_path = (*path, next(iter(given), "flush_interval"))
    batch = shown((*path, "batch_size"), f"{config.batch_size:,}")
    interval = shown(interval_path, format_duration(config.flush_interval))
    most = shown((*path, "max_batch_size"), f"{config.max_batch_size:,}")
    return f"when {batch} records wait or the oldest has waited {interval}; at most {most} records"


def _table(config: DeltaLakeConfig, shown: _Shown, path: Path) -> str:
    how = "appends" if config.write_mode == "append" else "each epoch replaces the table"
    compression = "no compression" if config.compression == "none" else config.compression
    missing = "is created if missing" if config.auto_create_table else "must exist"
    uri = shown((*path, "table_uri"), config.table_uri)
    return f"{uri} ({how}, {compression}, files of {config.target_file_size_mb} MB, {missing})"


def _columns(config: DeltaLakeConfig, shown: _Shown, path: Path) -> str:
    schema = config.event_schema
    if schema is None:
        return ", ".join(f"{name} {kind}" for name, kind in FIXED_COLUMNS[config.schema_type].items())
    if (*path, "schema") in shown.templates:
        return shown((*path, "schema"), config.fields)
    from rivermouth.config.types import storage_type, type_name

    columns = []
    for index, field in enumerate(schema):
        name = shown((*path, "schema", index, "name"), field.name)
        columns.append(f"{name} {type_name(storage_type(field.type))}{'' if field.nullable else ' not null'}")
    return ", ".join(columns)


def _bad_record(config: DeltaLakeConfig, shown: _Shown, path: Path) -> str:
    if config.on_bad_record == "fail":
        return "stops the sink"
    if config.on_bad_record == "drop":
        return "is dropped and counted"
    if "dead_letter_uri" in config.model_fields_set:
        return f"goes to {shown((*path, 'dead_letter_uri'), config.dead_letter_uri)}"
    uri = shown((*path, "table_uri"), config.table_uri)
    return f"goes to {uri.rstrip('/')}_dead_letters"
