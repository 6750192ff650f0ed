"""Durations, addresses, and what looks secret."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import PydanticCustomError

from rivermouth.config.redact import looks_secret, redact
from rivermouth.config.uri import is_inside, local_path
from rivermouth.config.values import format_duration, parse_duration
from rivermouth.errors import InvalidTableUri


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("5s", 5),
        ("500ms", 0.5),
        ("1m", 60),
        ("1h", 3600),
        ("1.5m", 90),
        (7, 7),
        (0.25, 0.25),
        ("60", 60),
        (0, 0),
        ("2 s", 2),
    ],
)
def test_durations(value: object, seconds: float) -> None:
    assert parse_duration(value) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "value", ["", "s", "5d", "5 sec", "-1s", "1m30s", True, None, -1, float("nan"), 1e300, [5], "٥s5"]
)
def test_what_is_no_duration(value: object) -> None:
    with pytest.raises(PydanticCustomError):
        parse_duration(value)


@given(st.integers(min_value=0, max_value=30 * 86_400_000))
def test_a_duration_is_read_back_as_it_is_written(milliseconds: int) -> None:
    duration = timedelta(milliseconds=milliseconds)
    assert parse_duration(format_duration(duration)) == duration


def test_local_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    here = str(tmp_path.resolve())
    assert local_path("lake/a") == local_path("./lake//a/") == f"{here}/lake/a"
    assert local_path(f"file://{here}/a%20b") == f"{here}/a b"
    assert local_path("50%") == f"{here}/50%"
    for escaped in ("a%20b", f"file://{here}/a%2520b"):  # delta-rs would decode it once more
        with pytest.raises(InvalidTableUri, match="percent escape"):
            local_path(escaped)
    (tmp_path / "link").symlink_to(tmp_path / "lake")
    assert local_path("link/a") == local_path("lake/a")


@pytest.mark.parametrize(
    "uri",
    [
        "",
        " ",
        "s3://b",
        "S3A://b",
        "gs://b",
        "az://b",
        "http://h",
        "file://rel",
        "file:a",
        "file:/a",
        "~/x",
        "a\n",
    ],
)
def test_other_addresses_are_refused(uri: str) -> None:
    with pytest.raises(InvalidTableUri):
        local_path(uri)


def test_inside() -> None:
    assert is_inside("/a/b", "/a")
    assert not is_inside("/a", "/a")
    assert not is_inside("/ab", "/a")
    assert not is_inside("/a", "/a/b")
    assert not is_inside("/a/_letters", "/a")


@pytest.mark.parametrize(
    "key",
    [
        "password",
        "ssl.key.password",
        "secret",
        "access_key_id",
        "secretAccessKey",
        "apiKey",
        "key",
        "sasl.jaas.config",
        "kafka.sasl.jaas.config",
        "credentials",
        "fs.s3a.secret.key",
        "auth-token",
        "KEY",
    ],
)
def test_secret_keys(key: str) -> None:
    assert looks_secret(key)


@pytest.mark.parametrize(
    "key", ["topics", "keys", "monkey", "keyspace", "bootstrap_servers", "partition_columns", "keyed"]
)
def test_other_keys(key: str) -> None:
    assert not looks_secret(key)


def test_redaction_keeps_the_structure() -> None:
    secret = {"a": [{"password": "x"}], "b": {"token": {"deep": 1}}, "c": "http://u:p@h/x", "d": 5}
    assert redact(secret) == {
        "a": [{"password": "***"}],
        "b": {"token": "***"},
        "c": "http://***@h/x",
        "d": 5,
    }
