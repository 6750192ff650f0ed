"""Pipelines of one source and one sink, by way of a config file as a user writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from rivermouth import sources
from rivermouth.config.load import load
from rivermouth.config.model import PipelineConfig

PIPELINE, SINK = "bench", "events"


def write(file: Path, connector: str, source: dict[str, Any], sink: dict[str, Any]) -> Path:
    """Write the config file of a pipeline."""
    tree = {
        "pipeline": PIPELINE,
        "sources": {"bus": {"connector": connector, "config": source}},
        "sinks": {SINK: {"connector": "delta-lake", "config": sink}},
    }
    file.write_text(yaml.safe_dump(tree, sort_keys=False))
    return file


def make(file: Path, connector: str, source: dict[str, Any], sink: dict[str, Any]) -> PipelineConfig:
    """The pipeline of a config file that is written now."""
    return load(write(file, connector, source, sink), sources.models())
