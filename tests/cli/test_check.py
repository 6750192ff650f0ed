"""`check`, `schema` and `init`, as a person calls them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from rivermouth.cli.check import check
from rivermouth.cli.init import init
from rivermouth.cli.schema import schema

app = typer.Typer()
for command in (check, init, schema):
    app.command()(command)
runner = CliRunner()

FILE = """
pipeline: shop
metrics_port: ${PORT}
spark: {conf: {spark.some.password: hunter2}}
sources:
  shop: {connector: generator, config: {topics: [orders], count: 5}}
sinks:
  orders:
    connector: delta-lake
    topics: [orders]
    config:
      table_uri: ${LAKE}/orders
      schema: order_id string not null, product string, n uint64
      partition_columns: [product]
      flush_interval_secs: 5
      table_properties: {delta.appendOnly: true, some.token: hunter2}
  raw:
    connector: delta-lake
    topic_pattern: o.*
    config: {table_uri: ./raw, on_bad_record: drop, write_mode: overwrite, compression: none,
             auto_create_table: false}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_valid_file_is_explained(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", "9111")
    monkeypatch.setenv("LAKE", "/secret/lake")
    Path("shop.yaml").write_text(FILE)
    result = runner.invoke(app, ["check", "shop.yaml"])
    assert result.exit_code == 0, result.output
    assert (
        result.output
        == """\
source shop
  connector   generator
  topics      orders
  count       5
sink orders
  reads       topics orders of shop
  writes      ${LAKE}/orders (appends, snappy, files of 128 MB, is created if missing)
  columns     json: order_id string not null, product string, n decimal(20,0)
  partitions  by product
  properties  delta.appendOnly: true, some.token: ***
  epoch       when 10,000 records wait or the oldest has waited 5s; at most 1,000,000 records
  bad record  goes to ${LAKE}/orders_dead_letters
sink raw
  reads       topics like o.* of shop
  writes      ./raw (each epoch replaces the table, no compression, files of 128 MB, must exist)
  columns     envelope: data string, event_type string, timestamp timestamp, stream string
  epoch       when 10,000 records wait or the oldest has waited 1m; at most 1,000,000 records
  bad record  is dropped and counted
run
  pipeline    shop
  spark       local[*], spark.some.password=***
  metrics     http://127.0.0.1:${PORT}/metrics
  stop        takes at most 30s
shop.yaml is valid
"""
    )


def test_every_problem_is_printed(folder: Path) -> None:
    Path("shop.yaml").write_text(FILE.replace("count: 5", "cuont: 5").replace("drop", "ignore"))
    result = runner.invoke(app, ["check", "shop.yaml"], env={"PORT": "", "LAKE": None})
    assert result.exit_code == 1
    assert [line.split(": ")[:2] for line in result.output.splitlines()] == [
        ["shop.yaml:3:15", "InvalidValue"],
        ["shop.yaml:6:59", "UnknownKey"],
        ["shop.yaml:12:18", "MissingVariable"],
        ["shop.yaml:20:47", "InvalidValue"],
    ]


def test_a_missing_file(folder: Path) -> None:
    result = runner.invoke(app, ["check", "nowhere.yaml"])
    assert (result.exit_code, result.output.split(": ")[:2]) == (1, ["nowhere.yaml:1:1", "UnreadableFile"])


@pytest.mark.parametrize(("options", "name"), [([], "rivermouth.yaml"), (["--toml"], "rivermouth.toml")])
def test_the_starter_file_passes_the_check(folder: Path, options: list[str], name: str) -> None:
    assert runner.invoke(app, ["init", *options]).exit_code == 0
    result = runner.invoke(app, ["check", name])
    assert result.exit_code == 0, result.output
    assert "writes      ./lake/orders" in result.output
    assert result.output.endswith(f"{name} is valid\n")


def test_both_starter_files_are_the_same_pipeline(folder: Path) -> None:
    runner.invoke(app, ["init"])
    runner.invoke(app, ["init", "--toml"])
    yaml, toml = (runner.invoke(app, ["check", f"rivermouth.{end}"]).output for end in ("yaml", "toml"))
    assert yaml.splitlines()[:-1] == toml.splitlines()[:-1]


def test_init_does_not_overwrite_unless_told(folder: Path) -> None:
    Path("rivermouth.yaml").write_text("mine")
    assert runner.invoke(app, ["init"]).exit_code == 1
    assert Path("rivermouth.yaml").read_text() == "mine"
    assert runner.invoke(app, ["init", "--force"]).exit_code == 0
    assert Path("rivermouth.yaml").read_text() != "mine"
    assert runner.invoke(app, ["init", "new/place"]).exit_code == 0
    assert Path("new/place/rivermouth.yaml").exists()


def test_the_schema_is_json(folder: Path) -> None:
    result = runner.invoke(app, ["schema"])
    assert result.exit_code == 0
    assert (
        "generator"
        in json.loads(result.output)["$defs"]["SourceConfig"]["properties"]["connector"]["anyOf"][0]["enum"]
    )


def test_check_starts_no_engine(folder: Path) -> None:
    runner.invoke(app, ["init"])
    script = (
        "import sys; from pathlib import Path; from rivermouth.cli.check import check\n"
        "check(Path('rivermouth.yaml'))\n"
        "heavy = [m for m in ('pyspark', 'deltalake', 'pandas', 'uvicorn') if m in sys.modules]\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
