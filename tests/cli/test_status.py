"""`rivermouth status`: what it says before, while and after a pipeline runs, and that it only reads."""

from __future__ import annotations

import json
import os
import signal
import socket
from pathlib import Path

import pytest
import yaml
from deltalake import DeltaTable
from typer.testing import CliRunner

from rivermouth.cli import app
from tests.docs.markdown import blocks
from tests.processes import wait_for
from tests.services.kafka import Message

SINK = {"schema": "n BIGINT NOT NULL"}


def generator(**config):
    return {"connector": "generator", "config": {"topics": ["numbers"], **config}}


def status(file: Path, *options: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["status", str(file), *options])
    assert result.exit_code == code, result.output
    return result.output


def as_json(file: Path, *options: str, code: int = 0):
    return json.loads(status(file, "--format", "json", *options, code=code))["sinks"]


def files(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*")}


@pytest.fixture
def file(lake):
    return lake.folder / "pipeline.yaml"


def test_before_the_first_start(lake, file):
    lake.config(generator(count=10), {"t": SINK})
    before = files(lake.folder)
    assert (
        status(file)
        == f"""\
sink t
  table         {lake.folder}/t
  state         not started yet: there is no table
  source        source
  lag           -
  partition  offset  earliest  head  lag
  numbers/0       -         0    10    -  new
"""
    )
    seen = as_json(file)["t"]
    assert (seen["started"], seen["version"], seen["owner"], seen["lag"]) == (False, None, None, None)
    assert files(lake.folder) == before


def test_a_table_that_others_made_is_not_started_yet(lake, file):
    lake.run(generator(count=10), {"t": SINK})
    lake.config(generator(count=10), {"t": SINK}, pipeline="another")
    assert "state         not started yet\n" in status(file)


def test_after_a_run_it_agrees_with_the_tables(lake, file):
    lake.run(generator(count=1000, broken=0.1, partitions=2), {"t": SINK, "u": SINK})
    lake.config(generator(count=1500, broken=0.1, partitions=2), {"t": SINK, "u": SINK})
    before = files(lake.folder)
    seen = as_json(file)["t"]
    ((rows,),) = lake.query("SELECT count(*) FROM {t}")
    reasons = dict(lake.query("SELECT reason, count(*) FROM {t_dead_letters} GROUP BY reason"))
    table = DeltaTable(str(lake.folder / "t"))
    note = json.loads(table.history(1)[0]["userMetadata"])
    assert seen["version"] == seen["last_commit"]["version"] == table.version()
    assert (seen["owner"], seen["generation"], seen["epoch"]) == (note["instance"], 1, 1)
    assert seen["last_epoch"]["counts"] == {
        "read": 1000,
        "written": rows,
        "rejected": reasons,
        "filtered": 0,
    }
    assert seen["dead_letters"] == {
        "table": f"{lake.folder}/t_dead_letters",
        "rows": sum(reasons.values()),
        "owed": False,
    }
    assert (seen["lag"], seen["restored"], seen["source"]["error"]) == (500, None, None)
    assert seen["partitions"] == [
        {
            "topic": "numbers",
            "partition": number,
            "offset": 500,
            "earliest": 0,
            "head": 750,
            "lag": 250,
            "condition": None,
        }
        for number in (0, 1)
    ]
    shown = status(file, "--sink", "u")
    assert "sink t" not in shown and "sink u" in shown
    assert f"read 1,000, written {rows:,}, rejected {1000 - rows:,} (" in shown
    assert files(lake.folder) == before


def documented(key: str):
    """What docs/operator.md shows of the JSON of a command: the block with this key."""
    shown = [json.loads(block.text) for block in blocks("json") if block.file.name == "operator.md"]
    (found,) = [tree for tree in shown if key in tree]
    return found


def test_the_json_is_as_documented(lake, file):
    lake.run(generator(count=100, broken=0.5), {"t": SINK})
    told = documented("sinks")
    real = json.loads(status(file, "--format", "json"))
    assert list(real) == list(told)
    told, real = told["sinks"]["orders"], real["sinks"]["t"]
    assert list(real) == list(told)
    for part in ("last_commit", "last_epoch", "dead_letters", "source"):
        assert list(real[part]) == list(told[part]), part
    assert list(real["last_epoch"]["counts"]) == list(told["last_epoch"]["counts"])
    assert list(real["partitions"][0]) == list(told["partitions"][0])
    result = CliRunner().invoke(app, ["offsets", "show", str(file), "--format", "json"])
    assert list(json.loads(result.output)["t"]) == list(documented("orders")["orders"])
    result = CliRunner().invoke(
        app, ["dead-letters", "show", str(file), "--format", "ndjson", "--reason", "InvalidEncoding"]
    )
    assert list(json.loads(result.output.splitlines()[0])) == list(documented("value_base64"))


def test_a_terminal_gets_the_same_words(lake, file):
    lake.run(generator(count=10), {"t": SINK})
    result = CliRunner().invoke(app, ["status", str(file)], env={"FORCE_COLOR": "1", "COLUMNS": "60"})
    assert result.exit_code == 0
    assert "\x1b[1msink t\x1b[0m" in result.output
    assert "numbers/0" in result.output


def test_a_claim_after_the_last_epoch_does_not_hide_it(lake, file):
    for _ in range(2):
        lake.run(generator(count=10), {"t": SINK})
    seen = as_json(file)["t"]
    assert (seen["last_commit"]["kind"], seen["generation"]) == ("claim", 2)
    assert (seen["last_epoch"]["kind"], seen["last_epoch"]["epoch"]) == ("epoch", 1)
    shown = status(file)
    assert "last commit   version 3 (claim), " in shown
    assert "last epoch    version 2 (epoch), " in shown


def test_a_running_owner_is_not_disturbed(command, tmp_path):
    command.config(
        "p.yaml",
        {
            "pipeline": "p",
            "sources": {"gen": generator(rate=2000, broken=0.05)},
            "sinks": {
                "t": {
                    "connector": "delta-lake",
                    "config": {"table_uri": str(tmp_path / "t"), **SINK, "flush_interval": "200ms"},
                }
            },
        },
    )
    process = command.start("run", "p.yaml")
    file, seen = tmp_path / "p.yaml", []
    wait_for(lambda: as_json(file)["t"]["epoch"], "an epoch")

    def looked_often() -> bool:
        seen.append(as_json(file)["t"])
        return seen[-1]["epoch"] >= seen[0]["epoch"] + 3

    wait_for(looked_often, "three more epochs")
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert {look["owner"] for look in seen} == {as_json(file)["t"]["owner"]}
    for name in ("t", "t_dead_letters"):
        made = DeltaTable(str(tmp_path / name)).history()
        notes = [json.loads(commit["userMetadata"]) for commit in made if "userMetadata" in commit]
        assert {note["instance"] for note in notes} == {seen[0]["owner"]}
        assert len(made) - len(notes) == 1  # it was created


def test_dead_letters_that_a_crash_kept_out_are_owed(command, tmp_path):
    command.config(
        "p.yaml",
        {
            "sources": {"gen": generator(count=1000, broken=0.1)},
            "sinks": {"t": {"connector": "delta-lake", "config": {"table_uri": str(tmp_path / "t"), **SINK}}},
        },
    )
    done = command.run("run", "p.yaml", "--once", RIVERMOUTH_FAULT="before-dead-letters=kill")
    assert done.returncode == -signal.SIGKILL
    file = tmp_path / "p.yaml"
    assert as_json(file)["t"]["dead_letters"]["owed"] is True
    assert "0 rows in" in status(file) and "those of the last epoch are not in yet" in status(file)
    assert command.run("run", "p.yaml", "--once").returncode == 0
    assert as_json(file)["t"]["dead_letters"]["owed"] is False


def test_a_restore_is_told_until_a_start_has_dealt_with_it(lake, file):
    lake.run(generator(count=10), {"t": SINK})
    lake.run(generator(count=20), {"t": SINK})
    DeltaTable(str(lake.folder / "t")).restore(2)
    restored = DeltaTable(str(lake.folder / "t")).version()
    assert as_json(file)["t"]["restored"] == restored
    assert f"restored      by version {restored}, with RESTORE" in status(file)
    lake.run(generator(count=20), {"t": {**SINK, "on_restore": "continue"}})
    assert as_json(file)["t"]["restored"] is None


def test_of_many_partitions_those_with_most_lag_are_shown(lake, file):
    lake.run(generator(count=300, partitions=30), {"t": SINK})
    lake.config(generator(count=305, partitions=30), {"t": SINK})
    shown = status(file)
    rows = [line.split() for line in shown.splitlines() if line.startswith("  numbers/")]
    assert len(rows) == 20
    assert [row[4] for row in rows] == ["1"] * 5 + ["0"] * 15
    assert "lag           5\n" in shown
    assert "partitions    30; the 20 with most lag are below, --all shows all\n" in shown
    assert status(file, "--all").count("  numbers/") == 30
    assert len(as_json(file)["t"]["partitions"]) == 30


def test_log_files_that_are_gone_take_only_the_last_commit_away(lake, file):
    for count in (10, 20):
        lake.run(generator(count=count), {"t": SINK})
    table = DeltaTable(str(lake.folder / "t"))
    table.create_checkpoint()
    for version in range(table.version()):
        os.unlink(lake.folder / "t" / "_delta_log" / f"{version:020d}.json")
    another = lake.folder / "t" / "_delta_log" / f"{table.version():020d}.json"
    lines = [json.loads(line) for line in another.read_text().splitlines()]
    another.write_text("\n".join(json.dumps(line) for line in lines if "txn" not in line))
    seen = as_json(file)["t"]
    assert (seen["epoch"], seen["generation"], seen["lag"]) == (2, 2, 0)
    assert (seen["owner"], seen["last_commit"], seen["last_epoch"]) == (None, None, None)
    assert "owner         no longer in the log, generation 2\n" in status(file)


def test_files_are_looked_at_and_no_manifest_is_written(lake, file):
    (lake.folder / "in").mkdir()
    (lake.folder / "in" / "a.ndjson").write_text('{"n": 1}\n' * 100)
    source = {
        "connector": "files",
        "config": {"path": str(lake.folder / "in"), "rest_interval": "0s", "starting_offsets": "latest"},
    }
    lake.config(source, {"t": SINK})
    before = files(lake.folder)
    assert as_json(file)["t"]["partitions"][0]["head"] == 1
    assert files(lake.folder) == before
    lake.run(source, {"t": SINK})
    (lake.folder / "in" / "b.ndjson").write_text('{"n": 1}\n' * 100)
    (place,) = as_json(file)["t"]["partitions"]
    assert (place["offset"], place["head"], place["lag"]) == (1, 2, 900 // 200)


def test_a_table_that_cannot_be_read_fails_after_the_others_are_shown(lake, file):
    lake.run(generator(count=10), {"t": SINK, "u": SINK})
    (lake.folder / "t" / "_delta_log" / f"{0:020d}.json").write_text("{")
    seen = as_json(file, code=1)
    assert seen["t"]["error"].startswith(f"DeltaWriterFailed: the table {lake.folder}/t cannot be opened")
    assert (seen["u"]["error"], seen["u"]["epoch"]) == (None, 1)
    assert "sink u" in status(file, code=1)


def test_a_sink_that_is_not_there(lake, file):
    lake.config(generator(count=10), {"t": SINK})
    said = status(file, "--sink", "nowhere", code=1)
    assert said.startswith("InvalidConfig: there is no sink 'nowhere' in pipeline 'test' (it has t)")


def kafka_source(servers: str, **more):
    options = {"default.api.timeout.ms": "2000", "request.timeout.ms": "1000"}
    return {"connector": "kafka", "config": {"bootstrap_servers": servers, "options": options, **more}}


def numbers(count: int, partition: int):
    return [Message(b'{"n": %d}' % n, partition=partition) for n in range(count)]


def test_heads_and_lag_of_kafka_and_what_came_and_went(lake, file, kafka, command):
    """In a process of its own: a JVM without Spark beside the tests' session would prove less."""
    one, other = kafka.create_topic(partitions=2), kafka.create_topic()
    kafka.produce(one, [*numbers(30, 0), *numbers(20, 1)])
    lake.run(kafka_source(kafka.bootstrap_servers, topics=[one, other]), {"t": SINK})
    kafka.produce(one, numbers(5, 1))
    kafka.add_partitions(one, 3)
    kafka.produce(one, numbers(7, 2))
    lake.config(kafka_source(kafka.bootstrap_servers, topics=[one]), {"t": SINK})
    before = DeltaTable(str(lake.folder / "t")).version()
    done = command.run("status", str(file), "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    seen = json.loads(done.stdout)["sinks"]["t"]
    places = [tuple(place.values()) for place in seen["partitions"]]
    assert sorted(places, key=str) == sorted(
        [
            (one, 0, 30, 0, 30, 0, None),
            (one, 1, 20, 0, 25, 5, None),
            (one, 2, None, 0, 7, 7, "new"),
            (other, 0, 0, None, None, None, "gone"),
        ],
        key=str,
    )
    assert seen["lag"] == 12
    assert DeltaTable(str(lake.folder / "t")).version() == before


def test_a_source_that_cannot_be_reached_leaves_the_tables_side(lake, file, command):
    """Sinks whose source is down do not wait for each other: see the timeouts above."""
    lake.run(generator(count=10), {"t": SINK, "u": SINK})
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        lake.config(kafka_source(f"127.0.0.1:{port}", topics=["numbers"]), {"t": SINK, "u": SINK})
        done = command.run("status", str(file), "--format", "json")
        shown = command.run("status", str(file), "--sink", "t")
    assert (done.returncode, done.stderr) == (0, "")
    for seen in json.loads(done.stdout)["sinks"].values():
        assert seen["source"]["error"].startswith(f"SourceUnavailable: Kafka at 127.0.0.1:{port}: ")
        (place,) = seen["partitions"]
        assert (place["offset"], place["head"], place["lag"], seen["epoch"]) == (10, None, None, 1)
    assert shown.returncode == 0
    assert "  error         SourceUnavailable: " in shown.stdout
    assert "  numbers/0      10         -     -    -\n" in shown.stdout


def test_the_config_is_checked_as_ever(tmp_path):
    (tmp_path / "p.yaml").write_text(yaml.safe_dump({"sources": {}}))
    assert "p.yaml:" in status(tmp_path / "p.yaml", code=1)
