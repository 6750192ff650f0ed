"""The properties of a session: ours on one machine, few on a cluster, the user's above all."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from rivermouth.spark import command, settings

_GIB = 1024**3


def _properties(master: str, conf: dict[str, str] | None = None) -> dict[str, str]:
    jars = [Path("/jars/a.jar"), Path("/jars/b.jar")]
    options = ["-Dplain=1", "-Dspaced=/a b"]
    return settings.properties(
        "app", master, conf or {}, jars, Path("/scratch"), options, cores=3, memory=8 * _GIB
    )


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("local[*]", "local[*,4]"),
        ("local", "local[1,4]"),
        ("local[2]", "local[2,4]"),
        ("local[2,7]", "local[2,7]"),
        ("spark://host:7077", "spark://host:7077"),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]"),
    ],
)
def test_an_embedded_session_tries_tasks_again(given: str, used: str) -> None:
    assert _properties(given)["spark.master"] == used


def test_what_is_for_one_machine_stays_off_a_cluster() -> None:
    embedded, cluster = _properties("local[*]"), _properties("k8s://https://host")
    assert embedded["spark.driver.host"] == "127.0.0.1" and "spark.driver.host" not in cluster
    assert embedded["spark.sql.shuffle.partitions"] == "3" and "spark.sql.shuffle.partitions" not in cluster
    assert cluster["spark.jars"] == "/jars/a.jar,/jars/b.jar" and "spark.jars" not in embedded
    assert embedded["spark.scheduler.mode"] == cluster["spark.scheduler.mode"] == "FAIR"


def test_workers_are_reached_through_files_where_the_path_is_short_enough() -> None:
    def enabled(folder: Path) -> bool:
        values = settings.properties("app", "local[*]", {}, [], folder, [], cores=1, memory=_GIB)
        return "spark.python.unix.domain.socket.enabled" in values

    assert enabled(Path("/tmp/rivermouth-session-abcdefgh"))
    assert not enabled(Path("/var/folders") / ("x" * 80))


def test_the_users_conf_wins_and_java_options_add_up() -> None:
    values = _properties(
        "local[*]", {"spark.ui.enabled": "true", "spark.driver.extraJavaOptions": "-XX:+UseParallelGC"}
    )
    assert values["spark.ui.enabled"] == "true"
    assert shlex.split(values["spark.driver.extraJavaOptions"]) == [
        "-Dplain=1",
        "-Dspaced=/a b",
        "-XX:+UseParallelGC",
    ]


@pytest.mark.parametrize(("total", "memory"), [(1, "1g"), (8, "2g"), (64, "4g")])
def test_the_jvm_gets_a_quarter_of_the_memory_within_bounds(total: int, memory: str) -> None:
    assert settings.driver_memory(total * _GIB) == memory


def test_java_reads_the_properties_file_as_it_was_meant(tmp_path: Path, spark: object) -> None:
    odd = {
        "spark.plain": "value",
        "spark.odd = key: #!": " leading, trailing ",
        "spark.lines": "a\nb\tc\\d\r",
        "spark.words": "größer ✓ 🌊",
        "spark.empty": "",
    }
    (tmp_path / "file").write_text(settings.as_file(odd), encoding="utf-8")
    jvm = spark._jvm  # type: ignore[attr-defined]
    stream = jvm.java.io.FileInputStream(str(tmp_path / "file"))
    reader = jvm.java.io.InputStreamReader(stream, "UTF-8")
    properties = jvm.java.util.Properties()
    properties.load(reader)
    reader.close()
    assert {key: properties.getProperty(key) for key in properties.stringPropertyNames()} == odd


def test_the_jvm_is_opened_as_sparks_launcher_would(spark: object) -> None:
    launcher = spark._jvm.org.apache.spark.launcher.JavaModuleOptions  # type: ignore[attr-defined]
    theirs = set(launcher.defaultModuleOptions().split())
    assert theirs - set(command.MODULE_OPTIONS) == {"--add-modules=jdk.incubator.vector"}
    assert set(command.MODULE_OPTIONS) <= theirs
