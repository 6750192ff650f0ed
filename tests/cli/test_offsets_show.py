"""`rivermouth offsets show`: the offsets of sinks, in the shape in which they can be set."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable
from typer.testing import CliRunner

from rivermouth.cli import app
from rivermouth.cli.places import parse_place
from tests.services.kafka import Message

SINK = {"schema": "n BIGINT NOT NULL"}


def generator(**config):
    return {"connector": "generator", "config": {"topics": ["numbers"], **config}}


def show(file: Path, *options: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["offsets", "show", str(file), *options])
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture
def file(lake):
    return lake.folder / "pipeline.yaml"


def test_offsets_for_people(lake, file):
    lake.run(generator(count=2001, partitions=2), {"t": SINK})
    lake.config(generator(count=2103, partitions=3), {"t": SINK, "u": SINK})
    assert (
        show(file)
        == """\
sink t
  partition  offset  earliest   head  lag
  numbers/0   1,001         0  1,001    0
  numbers/1   1,000         0  1,000    0
  numbers/2       -         0    701  701  new
sink u
  state         not started yet
  partition  offset  earliest  head  lag
  numbers/0       -         0   701    -  new
  numbers/1       -         0   701    -  new
  numbers/2       -         0   701    -  new
"""
    )


def test_offsets_for_programs_have_the_shape_in_which_they_are_set(lake, file):
    lake.run(generator(count=20, partitions=2), {"t": SINK, "u": SINK})
    lake.config(generator(count=25, partitions=2), {"t": SINK, "u": SINK})
    seen = json.loads(show(file, "--format", "json", "--sink", "t"))
    assert seen == {
        "t": {
            "offsets": {"numbers": {"0": 10, "1": 10}},
            "gone": {},
            "earliest": {"numbers": {"0": 0, "1": 0}},
            "heads": {"numbers": {"0": 13, "1": 12}},
            "lag": {"numbers": {"0": 3, "1": 2}},
            "error": None,
        }
    }
    place = parse_place(json.dumps(seen["t"]["offsets"]), "--to")
    assert place == {"numbers": {0: 10, 1: 10}}


def test_it_makes_nothing(lake, file):
    lake.config(generator(count=20), {"t": SINK})
    assert json.loads(show(file, "--format", "json"))["t"]["offsets"] == {}
    assert [path.name for path in lake.folder.iterdir()] == ["pipeline.yaml"]


def test_mistakes_are_told(lake, file):
    lake.run(generator(count=20), {"t": SINK})
    assert show(file, "--sink", "x", code=1).startswith("InvalidConfig: there is no sink 'x'")
    (lake.folder / "t" / "_delta_log" / f"{0:020d}.json").write_text("{")
    assert "  error         DeltaWriterFailed: the table " in show(file, code=1)


def test_a_partition_that_is_gone_is_apart_from_those_that_can_be_set(lake, file, kafka, command):
    one, other = kafka.create_topic(), kafka.create_topic()
    for topic in (one, other):
        kafka.produce(topic, [Message(b'{"n": 1}')])

    def source(*topics):
        servers = {"bootstrap_servers": kafka.bootstrap_servers}
        return {"connector": "kafka", "config": {**servers, "topics": list(topics)}}

    lake.run(source(one, other), {"t": SINK})
    lake.config(source(one), {"t": SINK})
    before = DeltaTable(str(lake.folder / "t")).version()
    done = command.run("offsets", "show", str(file), "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    seen = json.loads(done.stdout)["t"]
    assert (seen["offsets"], seen["gone"]) == ({one: {"0": 1}}, {other: {"0": 1}})
    assert DeltaTable(str(lake.folder / "t")).version() == before
