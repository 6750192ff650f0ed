"""Jars are fetched once, whole, by one process; here from a mirror in a folder, named as a company would."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rivermouth.errors import SetupError
from rivermouth.spark import jars

_DEFINITION = """\
<ivy-module version="2.0">
  <info organisation="test" module="jars"/>
  <configurations><conf name="one"/><conf name="two"/></configurations>
  <dependencies>
    <dependency org="org.example" name="first" rev="1.0" conf="one->default"/>
    <dependency org="org.example" name="second" rev="2.0" conf="two->default"/>
  </dependencies>
</ivy-module>
"""


@pytest.fixture
def definition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two confs of one jar each, a mirror that has both, and an empty cache."""
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    (mirror / "first-1.0.jar").write_bytes(b"first" * 1000)
    (mirror / "second-2.0.jar").write_bytes(b"second" * 1000)
    settings = tmp_path / "settings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="mirror"/><resolvers><filesystem name="mirror">'
        f'<artifact pattern="{mirror}/[artifact]-[revision].[ext]"/>'
        "</filesystem></resolvers></ivysettings>"
    )
    monkeypatch.setenv("RIVERMOUTH_IVY_SETTINGS", str(settings))
    monkeypatch.setenv("RIVERMOUTH_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "ivy.xml"
    path.write_text(_DEFINITION)
    return path


def _no_mirror(definition: Path) -> None:
    for jar in (definition.parent / "mirror").iterdir():
        jar.unlink()


def test_jars_are_fetched_once_and_then_need_no_mirror(definition: Path) -> None:
    said: list[str] = []
    assert jars.missing(("one", "two"), definition) == ["one", "two"]
    found = jars.ensure(("one", "two"), said.append, definition=definition)
    assert [path.name for path in found] == ["first-1.0.jar", "second-2.0.jar"]
    assert found[0].read_bytes() == b"first" * 1000
    assert "found first 1.0" in said and "found second 2.0" in said

    _no_mirror(definition)
    again: list[str] = []
    assert jars.ensure(("one", "two"), again.append, definition=definition) == found
    assert again == []
    assert jars.missing(("one", "two"), definition) == []


def test_only_what_is_missing_is_fetched(definition: Path) -> None:
    jars.ensure(("one",), definition=definition)
    (definition.parent / "mirror" / "first-1.0.jar").unlink()
    found = jars.ensure(("one", "two"), definition=definition)
    assert [path.name for path in found] == ["first-1.0.jar", "second-2.0.jar"]


def test_a_damaged_jar_is_fetched_again(definition: Path) -> None:
    (jar,) = jars.ensure(("one",), definition=definition)
    jar.write_bytes(b"cut")
    assert jars.missing(("one",), definition) == ["one"]
    (jar,) = jars.ensure(("one",), definition=definition)
    assert jar.read_bytes() == b"first" * 1000


def test_a_changed_definition_has_jars_of_its_own(definition: Path) -> None:
    before = jars.ensure(("one",), definition=definition)
    definition.write_text(_DEFINITION + "<!-- changed -->")
    assert jars.ensure(("one",), definition=definition)[0].parent != before[0].parent


def test_two_processes_at_once_fetch_once(definition: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from rivermouth.spark import jars\n"
        "said = []\n"
        "found = jars.ensure(('one', 'two'), said.append, definition=Path(sys.argv[1]))\n"
        "print(len(said) > 0, *found)\n"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", script, str(definition)], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    lines = [process.communicate()[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert sorted(line[0] for line in lines) == ["False", "False", "True"]
    assert lines[0][1:] == lines[1][1:] == lines[2][1:]
    assert all(Path(path).exists() for path in lines[0][1:])


def test_what_cannot_be_fetched_is_named_and_leaves_nothing_half_done(definition: Path) -> None:
    (definition.parent / "mirror" / "second-2.0.jar").unlink()
    with pytest.raises(SetupError) as caught:
        jars.ensure(("one", "two"), definition=definition)
    assert "org.example#second;2.0: not found" in caught.value.message
    assert "RIVERMOUTH_IVY_SETTINGS" in caught.value.remedy
    assert len(caught.value.message) < 600
    assert jars.missing(("one", "two"), definition) == ["one", "two"]
    assert list(jars.folder(definition).iterdir()) == []


def test_settings_that_are_not_there_are_an_error(definition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIVERMOUTH_IVY_SETTINGS", "/nowhere/settings.xml")
    with pytest.raises(SetupError, match=r"/nowhere/settings\.xml, which is not a file"):
        jars.ensure(("one",), definition=definition)


def test_a_cache_that_cannot_be_made_is_an_error(definition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIVERMOUTH_CACHE_DIR", str(definition / "below-a-file"))
    with pytest.raises(SetupError, match="cannot create the cache directory"):
        jars.ensure(("one",), definition=definition)


def test_ivy_goes_through_the_proxy_that_pip_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", "localhost,.example.org")
    assert jars._proxy_options() == [
        "-Dhttps.proxyHost=proxy.example",
        "-Dhttps.proxyPort=3128",
        "-Dhttp.nonProxyHosts=localhost|*.example.org",
    ]
