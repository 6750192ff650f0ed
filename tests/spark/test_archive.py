"""A prepared machine starts Spark from an archive of classes, made for one Java and one set of jars."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rivermouth.spark import archive, cache, java

_SCRIPT = """
import shutil, sys
from pathlib import Path
from rivermouth.spark import cache, session

assert not session.is_prepared()
session.prepare()
assert session.is_prepared()
(made,) = (cache.directory() / "classes").iterdir()
before = made.stat().st_mtime_ns
session.prepare()
assert made.stat().st_mtime_ns == before, "made twice"

spark = session.start("prepared", "local[1]", {"spark.driver.memory": "1g"})
maps = Path(f"/proc/{spark._jvm.ProcessHandle.current().pid()}/maps").read_text()
assert str(made) in maps, "the archive is not in use"
assert spark.range(10).count() == 10
session.stop(spark)
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_prepared_machine_starts_from_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jars = cache.directory() / "jars"
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "jars").symlink_to(jars)
    monkeypatch.setenv("RIVERMOUTH_CACHE_DIR", str(tmp_path / "cache"))
    subprocess.run([sys.executable, "-c", _SCRIPT], check=True)


def test_an_archive_is_for_one_java_and_one_set_of_jars(tmp_path: Path) -> None:
    jars = [tmp_path / "a.jar", tmp_path / "b.jar"]
    for jar in jars:
        jar.write_bytes(b"x")
    runtime = java.Java(Path("/jdk"), 17, "PATH")
    place = archive.path(runtime, jars)
    assert archive.path(runtime, jars) == place
    assert archive.options(runtime, jars) == []
    jars[1].write_bytes(b"changed")
    assert archive.path(runtime, jars) != place
    assert archive.path(java.Java(Path("/other"), 17, "PATH"), jars) != archive.path(runtime, jars)
