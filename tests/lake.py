"""Run real pipelines in the tests' Spark session, and read their tables with readers that are not ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import yaml
from duckdb_extensions import import_extension

from rivermouth import sources
from rivermouth.config.load import load
from rivermouth.observe.observer import Observer
from rivermouth.pipeline.run import run

import_extension("delta")


class Lake:
    """A folder of tables, pipelines that fill it, and DuckDB to look at it."""

    def __init__(self, folder: Path, spark: Any) -> None:
        self.folder = folder
        self.spark = spark
        self.duckdb = duckdb.connect()
        self.duckdb.execute("LOAD delta")

    def config(self, source: dict[str, Any], sinks: dict[str, dict[str, Any]], **more: Any):
        """A pipeline of one source; a sink's own keys are those of its `config`, topics apart."""
        tree: dict[str, Any] = {"pipeline": "test", "sources": {"source": source}, "sinks": {}, **more}
        for name, keys in sinks.items():
            keys = {"table_uri": str(self.folder / name), **keys}
            sink: dict[str, Any] = {"connector": "delta-lake", "config": keys}
            for outer in ("topics", "topic_pattern"):
                if outer in keys:
                    sink[outer] = keys.pop(outer)
            tree["sinks"][name] = sink
        file = self.folder / "pipeline.yaml"
        file.write_text(yaml.safe_dump(tree))
        return load(file, sources.models())

    def run(self, source: dict[str, Any], sinks: dict[str, dict[str, Any]], **options: Any) -> Observer:
        """Run a pipeline; `once` unless told how long."""
        options.setdefault("once", "seconds" not in options)
        return run(self.config(source, sinks), spark=self.spark, **options)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Ask DuckDB; {name} in the query is the table of that sink."""
        tables = {p.name: f"delta_scan('{p}')" for p in self.folder.iterdir() if p.is_dir()}
        return self.duckdb.execute(sql.format(**tables)).fetchall()

    def spark_count(self, name: str) -> int:
        """Ask delta-spark."""
        return int(self.spark.read.format("delta").load(str(self.folder / name)).count())
