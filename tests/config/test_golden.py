"""Every file in golden/ with the problems `check` prints for it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rivermouth.config.load import InvalidConfigFile, load
from rivermouth.config.model import Model

GOLDEN = Path(__file__).parent / "golden"
FILES = sorted(path.name for path in GOLDEN.iterdir() if path.suffix != ".txt")
ENVIRON = {
    "PORT": "portly",
    "SHORT": "s3cret",
    "BATCH": "manyfold",
    "COLUMN": "hideme",
    "SECRET": "hunter22",
    "SERVERS": "user:pa55word, other",
    "SCHEME": "gopher",
    "PATTERN": "hush(",
}


def problems_of(name: str, connectors: dict[str, type[Model]], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(GOLDEN)
    with pytest.raises(InvalidConfigFile) as caught:
        load(name, connectors, ENVIRON)
    return str(caught.value) + "\n"


@pytest.mark.parametrize("name", FILES)
def test_problems_are_as_written_down(
    name: str, connectors: dict[str, type[Model]], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = problems_of(name, connectors, monkeypatch)
    expected = GOLDEN / f"{name}.txt"
    if os.environ.get("RIVERMOUTH_WRITE_GOLDEN"):  # then read the difference before you commit it
        expected.write_text(said, encoding="utf-8")
    assert said == expected.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FILES)
def test_nothing_hidden_is_shown(
    name: str, connectors: dict[str, type[Model]], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = problems_of(name, connectors, monkeypatch)
    assert "hunter2" not in said
    for variable, value in ENVIRON.items():
        assert value not in said, variable
    assert "pa55word" not in said


def test_every_expectation_has_its_file() -> None:
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(FILES)
