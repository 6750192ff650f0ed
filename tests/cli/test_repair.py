"""The repair commands as an operator types them, while the pipeline is down: asked first, done once."""

from __future__ import annotations

import json
from datetime import datetime, timezone

import duckdb
import pytest
from deltalake import DeltaTable
from duckdb_extensions import import_extension

from rivermouth.cli.places import parse_place
from rivermouth.errors import ConfigError

import_extension("delta")


@pytest.fixture
def shop(command, kafka):
    """A pipeline that has landed 100 numbers; every fourth lacks m, which its schema demands."""
    topic = kafka.create_topic("orders", partitions=2)
    values = [json.dumps({"n": n} if n % 4 == 0 else {"n": n, "m": 1}).encode() for n in range(100)]
    kafka.produce(topic, values)
    tree = {
        "pipeline": "shop",
        "spark": {"conf": {"spark.driver.memory": "512m"}},
        "sources": {
            "bus": {
                "connector": "kafka",
                "config": {"bootstrap_servers": kafka.bootstrap_servers, "topics": [topic]},
            }
        },
        "sinks": {
            "t": {
                "connector": "delta-lake",
                "config": {"table_uri": "t", "schema": "n BIGINT NOT NULL, m BIGINT NOT NULL"},
            }
        },
    }
    command.config("shop.yaml", tree)
    assert command.run("run", "shop.yaml", "--once").returncode == 0
    return command, tree, topic


def numbers(command):
    database = duckdb.connect()
    database.execute("LOAD delta")
    return database.execute(
        f"SELECT count(n), count(DISTINCT n) FROM delta_scan('{command.folder / 't'}')"
    ).fetchall()


def letters(command):
    database = duckdb.connect()
    database.execute("LOAD delta")
    table = command.folder / "t_dead_letters"
    return database.execute(f"SELECT count(*), count(replayed) FROM delta_scan('{table}')").fetchall()


@pytest.mark.slow
def test_a_night_of_repairs(shop):
    """Rows deleted and read again, letters repaired, offsets set: one pipeline, for a start takes seconds."""
    command, _, topic = shop
    assert numbers(command) == [(75, 75)]

    # Rows are deleted, and their range is read again: asked first, broken off, gone on with, done once.
    DeltaTable(str(command.folder / "t")).delete("n >= 50")
    given = ("replay", "shop.yaml", "--sink", "t", "--from", "earliest")
    asked = command.run(*given)
    assert asked.returncode == 1
    assert "nothing was changed" in asked.stderr
    assert f"{topic}/0 0 to " in asked.stdout
    assert "would be doubled" in asked.stdout
    DeltaTable(str(command.folder / "t")).delete()
    DeltaTable(str(command.folder / "t_dead_letters")).delete()
    assert command.run(*given, "--yes", RIVERMOUTH_FAULT="before-dead-letters=kill").returncode == -9
    assert letters(command) == [(0, 0)]
    done = command.run("replay", "shop.yaml", "--sink", "t", "--resume", "--yes")
    assert done.returncode == 0, done.stderr
    assert (numbers(command), letters(command)) == ([(75, 75)], [(25, 0)])
    again = command.run(*given, "--yes")
    assert again.returncode == 1
    assert "ReplayPending: this very range was replayed already" in again.stderr

    # The dead letters are repaired and sent again.
    none = command.run("dead-letters", "replay", "shop.yaml", "--reason", "InvalidJson")
    assert (none.returncode, none.stdout) == (0, "sink t: 0 dead letters to try again\n")
    repaired = """arrow_cast(replace(arrow_cast(value, 'Utf8'), '}', ', "m": 9}'), 'Binary')"""
    DeltaTable(str(command.folder / "t_dead_letters")).update(updates={"value": repaired})
    done = command.run("dead-letters", "replay", "shop.yaml", "--yes")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "sink t: 25 landed and marked, 0 still bad"
    assert (numbers(command), letters(command)) == ([(100, 100)], [(25, 25)])

    # Offsets are set by hand, and the next start obeys.
    wrong = command.run("offsets", "reset", "shop.yaml", "--to", json.dumps({topic: {"7": 0}}), "--yes")
    assert (wrong.returncode, wrong.stderr.startswith(f"SourceInvalid: there is no {topic}/7")) == (1, True)
    refused = command.run("offsets", "reset", "shop.yaml", "--to", "earliest")
    assert (refused.returncode, "nothing was changed" in refused.stderr) == (1, True)
    place = json.dumps({topic: {"1": "earliest"}})
    done = command.run("offsets", "reset", "shop.yaml", "--to", place, "--yes")
    assert done.returncode == 0, done.stderr
    assert f"{topic}/1: " in done.stdout and f"{topic}/0" not in done.stdout
    assert command.run("run", "shop.yaml", "--once").returncode == 0
    total, distinct = numbers(command)[0]
    assert distinct == 100 < total < 200


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("earliest", "earliest"),
        ("latest", "latest"),
        ('{"a": {"0": 5, "1": "latest"}}', {"a": {0: 5, 1: "latest"}}),
        ("2026-01-31T12:00:00Z", datetime(2026, 1, 31, 12, tzinfo=timezone.utc)),
        ("2026-01-31", datetime(2026, 1, 31, tzinfo=timezone.utc)),
    ],
)
def test_places(text, place):
    assert parse_place(text, "--to") == place


@pytest.mark.parametrize(
    "text",
    [
        "",
        "newest",
        "12",
        "{}",
        '{"a": {}}',
        '{"a": 5}',
        '{"a": {"0": -1}}',
        '{"a": {"0": true}}',
        '{"a": {"x": 1}}',
        '{"a": {" 0": 1}}',
        '{"a": {"0": 1}, "a": {"1": 1}}',
        '{"a":' * 20_000,
        "{",
    ],
)
def test_what_is_no_place_is_told(text):
    with pytest.raises(ConfigError, match=r"--to: .* is no"):
        parse_place(text, "--to")
