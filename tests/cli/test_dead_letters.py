"""`rivermouth dead-letters list` and `show`: how many, why, which, and what they hold."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import pytest
from deltalake import DeltaTable
from typer.testing import CliRunner

from rivermouth.cli import app
from rivermouth.cli.times import moment
from rivermouth.errors import ConfigError
from tests.services.kafka import Message

SHOP = {"connector": "generator", "config": {"topics": ["orders", "clicks"], "count": 2000, "broken": 0.05}}
SINKS = {
    "orders": {"topics": ["orders"], "schema": "order_id STRING NOT NULL, ts TIMESTAMP"},
    "clicks": {"topics": ["clicks"], "schema": "session STRING NOT NULL, ts TIMESTAMP"},
}


def run(file: Path, command: str, *options: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["dead-letters", command, str(file), *options])
    assert result.exit_code == code, result.output
    return result.output


def listed(file: Path, *options: str):
    return json.loads(run(file, "list", "--format", "json", *options))


def shown(file: Path, *options: str):
    return [json.loads(line) for line in run(file, "show", "--format", "ndjson", *options).splitlines()]


@pytest.fixture
def file(lake):
    return lake.folder / "pipeline.yaml"


@pytest.fixture
def shop(lake, file):
    lake.run(SHOP, SINKS)
    return file


def test_counts_agree_with_a_reader_that_is_not_ours(lake, shop):
    for sink in SINKS:
        expected = lake.query(
            "SELECT sink, reason, topic, count(*), min(timestamp), max(timestamp), min(day), max(day) "
            f"FROM {{{sink}_dead_letters}} GROUP BY ALL ORDER BY ALL"
        )
        found = listed(shop, "--sink", sink)
        assert [(g["sink"], g["reason"], g["topic"], g["total"]) for g in found] == [r[:4] for r in expected]
        for group, row in zip(found, expected, strict=True):
            times = [moment(group[name], "") for name in ("first_time", "last_time")]
            assert (*times, group["first_day"], group["last_day"]) == (*row[4:6], str(row[6]), str(row[7]))
    assert len(listed(shop)) == sum(len(listed(shop, "--sink", sink)) for sink in SINKS)


def test_a_list_for_people(lake, shop):
    heads, *rows = run(shop, "list").splitlines()
    names = ["sink", "reason", "topic", "letters", "first record", "last record", "first met", "last met"]
    assert re.split(r"  +", heads.strip()) == names
    assert sum(int(row.split()[3]) for row in rows) == sum(group["total"] for group in listed(shop))
    assert not any(line.endswith(" ") for line in rows)


def test_filters(lake, shop):
    ((wrong,),) = lake.query("SELECT count(*) FROM {orders_dead_letters} WHERE reason = 'WrongType'")
    (group,) = listed(shop, "--reason", "WrongType", "--topic", "orders")
    assert group["total"] == wrong
    ((early,),) = lake.query(
        "SELECT count(*) FROM {clicks_dead_letters} WHERE timestamp < '2026-01-01T00:00:01Z'::timestamptz"
    )
    assert (
        sum(g["total"] for g in listed(shop, "--sink", "clicks", "--until", "2026-01-01T00:00:01")) == early
    )
    assert run(shop, "list", "--since", "2026-01-02") == "there are none\n"
    assert run(shop, "show", "--since", "2026-01-02") == "there are none\n"
    assert sum(g["total"] for g in listed(shop, "--since", "2026-01-01", "--until", "2026-01-02")) == sum(
        g["total"] for g in listed(shop)
    )


def test_replayed_letters_are_shown_with_all(lake, shop):
    letters = DeltaTable(str(lake.folder / "orders_dead_letters"))
    letters.update(
        {"replayed": "arrow_cast('2026-02-01T00:00:00Z', 'Timestamp(Microsecond, Some(\"UTC\"))')"},
        predicate="reason = 'NotAnObject'",
    )
    ((replayed,),) = lake.query("SELECT count(*) FROM {orders_dead_letters} WHERE replayed IS NOT NULL")
    assert replayed > 0
    assert listed(shop, "--sink", "orders", "--reason", "NotAnObject") == []
    (group,) = listed(shop, "--sink", "orders", "--reason", "NotAnObject", "--all")
    assert (group["total"], group["replayed"]) == (replayed, replayed)
    assert f" {replayed}/{replayed} " in run(shop, "list", "--all")
    assert shown(shop, "--sink", "orders", "--reason", "NotAnObject") == []
    (letter,) = shown(shop, "--sink", "orders", "--reason", "NotAnObject", "--all", "--limit", "1")
    assert letter["replayed"] == "2026-02-01T00:00:00Z"
    said = run(shop, "show", "--sink", "orders", "--reason", "NotAnObject", "--all", "--limit", "1")
    assert "  replayed      2026-02-01T00:00:00Z\n" in said


def test_the_newest_are_shown_first_and_whole(lake, shop):
    found = shown(shop, "--sink", "orders", "--limit", "5")
    expected = lake.query(
        'SELECT "offset", reason, message, value FROM {orders_dead_letters} ORDER BY timestamp DESC LIMIT 5'
    )
    for letter, (offset, reason, message, value) in zip(found, expected, strict=True):
        assert (letter["offset"], letter["reason"], letter["message"]) == (offset, reason, message)
        if "value_base64" in letter:
            assert base64.b64decode(letter["value_base64"]) == value
        else:
            assert letter["value"] == (None if value is None else value.decode())
    assert json.loads(run(shop, "show", "--sink", "orders", "--limit", "5", "--format", "json")) == found
    assert len(run(shop, "show", "--reason", "NullValue").split("\n  reason        NullValue\n")) == 11
    (broken,) = shown(shop, "--reason", "InvalidEncoding", "--limit", "1")
    assert "value" not in broken
    assert base64.b64decode(broken["value_base64"]).endswith(b"\xff\xfe")
    assert "\\xff\\xfe" in run(shop, "show", "--reason", "InvalidEncoding", "--limit", "1", "--full")


def test_hostile_records_of_kafka_are_readable(lake, file, kafka):
    topic = kafka.create_topic(
        config={"message.timestamp.after.max.ms": str(2**63 - 1), "retention.ms": "-1"}
    )
    records = [
        Message(b"[bold]\x1b[2J\nnext", key=b"\xff", headers=[("file", b"\xfe"), ("none", None)]),
        Message(b"x" * 500, timestamp_ms=1_767_225_600_000_000),  # microseconds, taken for milliseconds
    ]
    kafka.produce(topic, records)
    source = {
        "connector": "kafka",
        "config": {"bootstrap_servers": kafka.bootstrap_servers, "topics": [topic]},
    }
    lake.run(source, {"t": {"schema": "n BIGINT NOT NULL"}})
    odd, hostile = shown(file)
    assert odd["timestamp"] == "57971-02-25T00:00:00Z"
    assert hostile["value"] == "[bold]\x1b[2J\nnext"
    assert (hostile["key_base64"], hostile["headers"]) == (
        "/w==",
        [{"key": "file", "value_base64": "/g=="}, {"key": "none", "value": None}],
    )
    said = run(file, "show")
    assert "  value         [bold]\\x1b[2J\\nnext\n" in said
    assert "  key           \\xff\n" in said
    assert "  header        file: \\xfe\n  header        none: none\n" in said
    assert f"  value         {'x' * 200}... (500 bytes)\n" in said
    assert f"  value         {'x' * 500}\n" in run(file, "show", "--full")
    assert sum(g["total"] for g in listed(file, "--since", "2026-01-01")) == 2  # an odd time hides nothing
    colourful = CliRunner().invoke(app, ["dead-letters", "show", str(file)], env={"FORCE_COLOR": "1"})
    assert "[bold]\\x1b[2J" in colourful.output


def test_gap_rows_are_shown_like_the_rest(lake, file, kafka):
    topic = kafka.create_topic()
    kafka.produce(topic, [Message(b'{"n": 1}') for _ in range(10)])
    source = {
        "connector": "kafka",
        "config": {"bootstrap_servers": kafka.bootstrap_servers, "topics": [topic]},
    }
    sink = {"t": {"schema": "n BIGINT NOT NULL", "on_data_loss": "continue"}}
    lake.run(source, sink)
    kafka.produce(topic, [Message(b'{"n": 1}') for _ in range(10)])
    kafka.delete_records(topic, {0: 15})
    lake.run(source, sink)
    (group,) = listed(file, "--reason", "RecordsLost")
    assert (group["total"], group["first_time"]) == (1, None)
    (letter,) = shown(file)
    assert (letter["offset"], letter["value"], letter["timestamp"]) == (10, None, None)
    assert "  time          none\n" in run(file, "show")
    assert listed(file, "--since", letter["day"]) == [group]
    assert listed(file, "--until", letter["day"]) == []


def test_a_pipeline_that_never_ran_has_none(lake, file):
    lake.config(SHOP, SINKS)
    assert (run(file, "list"), run(file, "show")) == ("there are none\n",) * 2
    assert (listed(file), shown(file)) == ([], [])
    assert [path.name for path in lake.folder.iterdir()] == ["pipeline.yaml"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--sink", "x"], "InvalidConfig: there is no sink 'x' in pipeline 'test' (it has clicks, orders)"),
        (["--reason", "Bad"], "InvalidConfig: there is no reason 'Bad' (the reasons are InvalidJson, "),
        (["--since", "yesterday"], "InvalidConfig: --since: 'yesterday' is no time (write an ISO timestamp"),
        (["--until", "2026-02-30"], "InvalidConfig: --until: '2026-02-30' is no time"),
    ],
)
@pytest.mark.parametrize("command", ["list", "show"])
def test_mistakes_are_told(lake, file, command, options, said):
    lake.config(SHOP, SINKS)
    assert run(file, command, *options, code=1).startswith(said)


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("2026-01-31", "2026-01-31T00:00:00+00:00"),
        ("2026-01-31T12:30", "2026-01-31T12:30:00+00:00"),
        ("2026-01-31 12:30:01Z", "2026-01-31T12:30:01+00:00"),
        ("2026-01-31T12:30:01.5+02:00", "2026-01-31T10:30:01.500000+00:00"),
    ],
)
def test_times(text, iso):
    assert moment(text, "--since").isoformat() == iso


@pytest.mark.parametrize(
    "text", ["", "1700000000", "20260131", "12:00", "0001-01-01T00:00+05:00", "2026-1-1"]
)
def test_what_is_no_time(text):
    with pytest.raises(ConfigError):
        moment(text, "--since")
