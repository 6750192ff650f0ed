"""Files made to break a parser are told, like any other mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from rivermouth.config.load import read


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("deep.yaml", "a: " + "[" * 3000 + "]" * 3000),
        ("deep.toml", "a = " + "[" * 20_000 + "]" * 20_000),
        ("long.toml", "metrics_port = " + "9" * 5000),
    ],
)
def test_a_hostile_file_is_one_problem(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    loaded = read(file, {})
    assert loaded.config is None
    assert loaded.problems
