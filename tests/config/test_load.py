"""Loading: what a good file becomes, in YAML and TOML, with variables."""

from __future__ import annotations

import pickle
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pydantic import ValidationError

from rivermouth.config.load import InvalidConfigFile, load, read
from rivermouth.config.model import DeltaLakeConfig, Model, PipelineConfig, SinkConfig, SourceConfig
from rivermouth.errors import ConfigError

Connectors = dict[str, type[Model]]

YAML = """
pipeline: shop
metrics_port: ${PORT}
shutdown_timeout: 500ms
spark: {master: "local[2]", conf: {spark.ui.enabled: false, spark.sql.shuffle.partitions: 4}}
sources:
  bus:
    connector: kafka
    config: {bootstrap_servers: "${KAFKA:-localhost:9092}", topics: [orders, payments]}
sinks:
  orders:
    connector: delta-lake
    topics: [orders]
    config:
      table_uri: ./warehouse/orders/
      schema:
        - {name: id, data_type: Utf8, nullable: false}
        - {name: size, data_type: UInt8}
        - {name: ts, data_type: Timestamp}
      partition_columns: [size]
      flush_interval: 5s
      table_properties: {delta.appendOnly: true, delta.checkpointInterval: 10, x: y}
  all:
    connector: delta-lake
    topic_pattern: ^orders$
    config:
      {table_uri: "file:///warehouse/a%20b", schema_type: STRING, flush_interval_ms: 250,
       dead_letter_uri: /dead}
"""
TOML = """
pipeline = "shop"
metrics_port = "${PORT}"
shutdown_timeout = 0.5
spark.master = "local[2]"
spark.conf = { "spark.ui.enabled" = false, "spark.sql.shuffle.partitions" = 4 }

[sources.bus]
connector = "kafka"
config = { bootstrap_servers = "${KAFKA:-localhost:9092}", topics = ["orders", "payments"] }

[sinks.orders]
connector = "delta-lake"
topics = ["orders"]

[sinks.orders.config]
table_uri = "./warehouse/orders/"
partition_columns = ["size"]
flush_interval_secs = 5
table_properties = { "delta.appendOnly" = true, "delta.checkpointInterval" = 10, x = "y" }

[[sinks.orders.config.schema]]
name = "id"
data_type = "Utf8"
nullable = false

[[sinks.orders.config.schema]]
name = "size"
data_type = "UInt8"

[[sinks.orders.config.schema]]
name = "ts"
data_type = "Timestamp"

[sinks.all]
connector = "delta-lake"
topic_pattern = "^orders$"

[sinks.all.config]
table_uri = "file:///warehouse/a%20b"
schema_type = "String"
flush_interval = 0.25
dead_letter_uri = "/dead"
"""


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_yaml_and_toml_give_the_same_config(tmp_path: Path, connectors: Connectors) -> None:
    environ = {"PORT": "9090"}
    config = load(write(tmp_path, "a.yaml", YAML), connectors, environ)
    assert load(write(tmp_path, "b.toml", TOML), connectors, environ).model_dump() == config.model_dump()

    assert (config.pipeline, config.metrics_port, config.metrics_host) == ("shop", 9090, "127.0.0.1")
    assert config.shutdown_timeout == timedelta(milliseconds=500)
    assert config.spark.conf == {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "4"}
    assert config.sources["bus"].config.model_dump()["bootstrap_servers"] == "localhost:9092"
    orders, everything = config.sinks["orders"], config.sinks["all"]
    assert orders.source == everything.source == "bus"
    assert orders.config.flush_interval == timedelta(seconds=5)
    assert orders.config.schema_type == "json"
    assert orders.config.dead_letter_uri == "./warehouse/orders_dead_letters"
    assert orders.config.table_properties == {
        "delta.appendOnly": "true",
        "delta.checkpointInterval": "10",
        "x": "y",
    }
    assert orders.config.event_schema == pa.schema(
        [
            pa.field("id", pa.string(), nullable=False),
            pa.field("size", pa.uint8()),
            pa.field("ts", pa.timestamp("us", "UTC")),
        ]
    )
    assert everything.topic_pattern == "^orders$"
    assert everything.config.schema_type == "string"
    assert everything.config.event_schema is None
    assert everything.config.flush_interval == timedelta(milliseconds=250)


def test_the_smallest_file_has_every_default(tmp_path: Path, connectors: Connectors) -> None:
    text = (
        "sources: {s: {connector: generator}}\nsinks: {t: {connector: delta-lake, config: {table_uri: /t}}}\n"
    )
    config = load(write(tmp_path, "tiny-1.yml", text), connectors, {})
    sink = config.sinks["t"].config
    assert config.pipeline == "tiny-1"
    assert config.metrics_port is None
    assert (sink.schema_type, sink.batch_size, sink.max_batch_size) == ("envelope", 10_000, 1_000_000)
    assert (sink.write_mode, sink.compression, sink.on_bad_record) == ("append", "snappy", "dead_letter")
    assert (sink.target_file_size_mb, sink.max_commit_retries) == (128, 3)
    assert sink.flush_interval == timedelta(seconds=60)


def test_a_schema_may_be_ddl(tmp_path: Path, connectors: Connectors) -> None:
    text = """
sources: {s: {connector: generator}}
sinks:
  t:
    connector: delta-lake
    config:
      table_uri: /t
      schema: |
        id bigint not null,
        tags array<string>
"""
    schema = load(write(tmp_path, "a.yaml", text), connectors, {}).sinks["t"].config.event_schema
    assert schema is not None
    assert schema.names == ["id", "tags"]
    assert not schema.field("id").nullable


def test_two_sinks_may_append_to_one_table(tmp_path: Path, connectors: Connectors) -> None:
    text = (
        "sources: {s: {connector: generator}}\n"
        "sinks: {a: {connector: delta-lake, config: {table_uri: /t}}, "
        "b: {connector: delta-lake, config: {table_uri: /t/}}}\n"
    )
    assert set(load(write(tmp_path, "a.yaml", text), connectors, {}).sinks) == {"a", "b"}


@pytest.mark.parametrize("name", ["missing.yaml", "folder.yaml", "noending"])
def test_what_is_no_file_is_one_problem(name: str, tmp_path: Path, connectors: Connectors) -> None:
    (tmp_path / "folder.yaml").mkdir()
    with pytest.raises(InvalidConfigFile) as caught:
        load(tmp_path / name, connectors, {})
    (problem,) = caught.value.problems
    expected = {
        "missing.yaml": "UnreadableFile",
        "folder.yaml": "UnreadableFile",
        "noending": "UnknownFileType",
    }
    assert problem.code == expected[name]
    assert str(caught.value) == problem.render(str(tmp_path / name))
    assert isinstance(caught.value, ConfigError)


def test_problems_come_in_file_order_and_say_where(tmp_path: Path, connectors: Connectors) -> None:
    sinks = "sinks:\n  a: {connector: delta-lake, config: {table_uri: a, batch_size: x}}\n"
    text = sinks + "sources: {s: {connector: g}}\n"
    loaded = read(write(tmp_path, "a.yaml", text), connectors, {})
    assert loaded.config is None
    assert [problem.path for problem in loaded.problems] == [
        ("sinks", "a", "config", "batch_size"),
        ("sources", "s", "connector"),
    ]


def test_a_config_travels_by_pickle(tmp_path: Path, connectors: Connectors) -> None:
    config = load(write(tmp_path, "a.yaml", YAML), connectors, {"PORT": "1"})
    assert pickle.loads(pickle.dumps(config.sinks)) == config.sinks


def test_models_built_in_python_are_checked_as_well(connectors: Connectors) -> None:
    source = SourceConfig(connector="generator", config=connectors["generator"]())
    sink = SinkConfig(connector="delta-lake", config=DeltaLakeConfig(table_uri="/t", fields="a int"))
    config = PipelineConfig(pipeline="p", sources={"s": source}, sinks={"t": sink})
    assert config.sinks["t"].source == "s"
    with pytest.raises(ValidationError, match="InvalidPartition"):
        DeltaLakeConfig(table_uri="/t", partition_columns=["nope"])
    with pytest.raises(ValidationError, match="InvalidName"):
        PipelineConfig(pipeline="a b", sources={"s": source}, sinks={"t": sink})
    with pytest.raises(ValidationError, match="UnknownSource"):
        PipelineConfig(pipeline="p", sources={"x": source}, sinks={"t": config.sinks["t"]})


def test_a_config_does_not_show_its_secrets(tmp_path: Path, connectors: Connectors) -> None:
    keys = "password: hunter2hunter2, options: {sasl.jaas.config: hunter3}"
    text = YAML.replace("topics: [orders, payments]", keys)
    config = load(write(tmp_path, "a.yaml", text), connectors, {"PORT": "1"})
    assert config.sources["bus"].config.model_dump()["password"] == "hunter2hunter2"
    assert "hunter" not in repr(config)
    assert "***" in str(config)
    with pytest.raises(ValidationError) as caught:
        connectors["kafka"](bootstrap_servers="a", password="hunter2")
    assert "hunter2" not in str(caught.value)
