"""A Kafka listener that asks for a password: reading through it, and where the password never appears."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.services.kafka import SASL_PASSWORD, SASL_USER

LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.fixture
def secured(command, kafka):
    topic = kafka.create_topic()
    kafka.produce(topic, [b'{"n": %d}' % n for n in range(20)])
    options = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{LOGIN} required username="{SASL_USER}" password="${{KAFKA_PASSWORD}}";',
    }
    source = {"bootstrap_servers": kafka.sasl_servers, "topics": [topic], "options": options}
    sink = {"table_uri": "lake/t", "schema": "n BIGINT NOT NULL"}
    command.config(
        "p.yaml",
        {
            "sources": {"kafka": {"connector": "kafka", "config": source}},
            "sinks": {"t": {"connector": "delta-lake", "config": sink}},
        },
    )
    return command


def files_with(folder: Path, text: str) -> list[Path]:
    return [p for p in folder.rglob("*") if p.is_file() and text.encode() in p.read_bytes()]


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--verbose"], ["--log-format", "json"]])
def test_the_right_password_reads_and_is_shown_nowhere(secured, tmp_path, options):
    done = secured.run("run", "p.yaml", "--once", *options, KAFKA_PASSWORD=SASL_PASSWORD)
    assert done.returncode == 0, done.stderr
    rows = DeltaTable(str(tmp_path / "lake" / "t")).to_pyarrow_table().column("n").to_pylist()
    assert sorted(rows) == list(range(20))
    assert SASL_PASSWORD not in done.stdout + done.stderr
    assert files_with(tmp_path, "PlainLoginModule") == [tmp_path / "p.yaml"]
    assert files_with(tmp_path, SASL_PASSWORD) == []


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--verbose"]])
def test_a_wrong_password_is_told_and_shown_nowhere(secured, tmp_path, options):
    done = secured.run("run", "p.yaml", "--once", *options, KAFKA_PASSWORD="battery-staple-8")
    assert done.returncode == 1
    assert "ERROR t: SourceInvalid: Kafka at 127.0.0.1:" in done.stderr
    assert "SaslAuthenticationException: Authentication failed" in done.stderr
    assert "battery-staple-8" not in done.stdout + done.stderr
    assert files_with(tmp_path, "battery-staple-8") == []


def test_check_does_not_show_the_password(secured):
    done = secured.run("check", "p.yaml", KAFKA_PASSWORD=SASL_PASSWORD)
    assert done.returncode == 0, done.stdout
    assert SASL_PASSWORD not in done.stdout + done.stderr
