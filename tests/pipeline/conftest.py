"""Sinks opened by hand: what a process does at its start, without the process."""

from __future__ import annotations

import pytest

from rivermouth.observe.observer import Observer
from rivermouth.pipeline.ownership import Identity
from rivermouth.pipeline.run import make_sink
from rivermouth.spark.engine import Engine


@pytest.fixture
def opened(lake):
    def make(config, part="", engine=None):
        observer = Observer(config.pipeline, {"t": config.sinks["t"].config.flush_interval})
        identity = Identity.new(config.pipeline, "t")
        return make_sink(config, identity, engine or Engine(lake.spark), observer, part=part)

    return make
