"""Every config file that is shown or shipped is a whole one, passes the check, and runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from rivermouth import sources
from rivermouth.config.load import load
from rivermouth.config.model import PipelineConfig
from rivermouth.pipeline.run import run
from tests.docs.markdown import EXAMPLES, blocks

FILES = sorted([*EXAMPLES.glob("*.yaml"), *EXAMPLES.glob("*.toml")])
SHOWN = [(str(block), f".{block.language}", block.text) for block in blocks("yaml", "toml")]
ALL = [(file.name, file.suffix, file.read_text(encoding="utf-8")) for file in FILES] + SHOWN


@pytest.fixture(params=ALL, ids=[name for name, _, _ in ALL])
def config(
    request: pytest.FixtureRequest, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> PipelineConfig:
    _, suffix, text = request.param
    if "connector: kafka" in text or 'connector = "kafka"' in text:
        monkeypatch.setenv("KAFKA", request.getfixturevalue("shop"))
    file = workplace / f"shown{suffix}"
    file.write_text(text, encoding="utf-8")
    loaded = load(file, sources.models())
    # The ports that documents show are taken on some machines.
    return loaded.model_copy(update={"metrics_port": None if loaded.metrics_port is None else 0})


def test_it_runs_once_and_every_sink_lands_something(config, spark, statuses):
    seen = statuses(run(config, once=True, spark=spark))
    for name, status in seen.items():
        assert (status.phase, status.last_error) == ("stopped", None), name
        assert status.written > 0, name
        assert status.written == DeltaTable(config.sinks[name].config.table_uri).count(), name


def test_the_examples_are_in_yaml_and_toml_alike(workplace):
    both = [load(workplace / "examples" / name, sources.models()) for name in ("shop.yaml", "shop.toml")]
    assert both[0] == both[1]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_an_example_says_in_two_lines_what_it_shows(file):
    first, second, third = file.read_text(encoding="utf-8").splitlines()[:3]
    assert first.startswith("# ") and second.startswith("# ") and not third.startswith("#")


def test_the_files_example_lands_what_its_data_holds(workplace, spark, statuses):
    config = load(workplace / "examples" / "files.yaml", sources.models())
    seen = statuses(run(config, once=True, spark=spark))
    orders = DeltaTable("lake/inbox/orders").to_pyarrow_table()
    assert sorted(orders["order_id"].to_pylist()) == ["o-1", "o-2", "o-3", "o-5", "o-7"]
    dead = {reason: count for reason, count in seen["orders"].dead.items() if count}
    assert dead == {"WrongType": 1, "MissingField": 1, "InvalidJson": 1}


def test_the_envelope_example_tells_changes_apart(workplace, spark):
    run(load(workplace / "examples" / "envelope.yaml", sources.models()), once=True, spark=spark)
    types = DeltaTable("lake/changes/customers").to_pyarrow_table()["event_type"].to_pylist()
    assert sorted(types) == ["delete", "insert", "insert", "update"]
