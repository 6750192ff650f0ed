"""YAML and TOML: what values are, and where they stand."""

from __future__ import annotations

import math

import pytest

from rivermouth.config import toml_file, yaml_file
from rivermouth.config.document import SyntaxProblem


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("True", True),
        ("false", False),
        ("12:30:45", "12:30:45"),
        ("2024-01-01", "2024-01-01"),
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
        ("007", 7),
        ("0x1F", 31),
        ("0o17", 15),
        ("10_000", 10000),
        ("1e3", 1000.0),
        ("-1.5", -1.5),
        (".inf", math.inf),
        ("1.2.3", "1.2.3"),
        ("~", None),
        ("", None),
        ("'5'", "5"),
        ("!!str 5", "5"),
        ("!!int '5'", 5),
        ("${NAME}", "${NAME}"),
    ],
)
def test_yaml_scalars(text: str, value: object) -> None:
    found = yaml_file.parse(f"a: {text}\n").values["a"]
    assert found == value
    assert type(found) is type(value)


def test_yaml_anchors_and_merge_keys() -> None:
    document = yaml_file.parse(
        "base: &base {a: 1, b: 2}\nmore: &more {c: 3, b: 5}\n"
        "x: {<<: *base, b: 9}\ny:\n  <<: [*base, *more]\n  d: 4\nz: *base\n"
    )
    assert document.values["x"] == {"a": 1, "b": 9}
    assert document.values["y"] == {"a": 1, "b": 2, "c": 3, "d": 4}
    assert document.values["z"] == {"a": 1, "b": 2}
    assert document.keys["y", "a"] == (1, 14)
    assert document.duplicates == []


def test_a_yaml_that_grows_without_end_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(SyntaxProblem, match="too large"):
        yaml_file.parse("\n".join(lines))


def test_a_yaml_merge_of_itself_is_refused() -> None:
    with pytest.raises(SyntaxProblem, match="itself"):
        yaml_file.parse("a: &a\n  <<: *a\n")


@pytest.mark.parametrize(
    "text", ["a: [1, 2\n", "a: 'x\n", "%BAD\n", "a: *nowhere\n", "? [a]\n: b\n", "a: !!int x\n", "<<: 5\n"]
)
def test_broken_yaml_is_one_problem(text: str) -> None:
    with pytest.raises(SyntaxProblem):
        yaml_file.parse(text)


def test_toml_values_and_places() -> None:
    document = toml_file.parse(
        'a."b c".d = 1\n'
        "when = 2024-01-01T00:00:00Z\n"
        "[x.y]\n"
        'k = ["é", { q = 2 }]  # ä\n'
        "[[list]]\n"
        "n = 1\n"
        "[[list]]\n"
        "n = 2\n"
        "[list.sub]\n"
        "'lit' = 3\n"
        "[[list.deep]]\n"
        "z = 1\n"
    )
    assert document.values["when"] == "2024-01-01T00:00:00Z"
    assert document.values["list"][1] == {"n": 2, "sub": {"lit": 3}, "deep": [{"z": 1}]}
    assert document.keys["a", "b c", "d"] == (1, 9)
    assert document.place(("a", "b c", "d")) == (1, 13)
    assert document.place(("x", "y", "k", 1, "q")) == (4, 17)
    assert document.place(("list", 0, "n")) == (6, 5)
    assert document.place(("list", 1, "n")) == (8, 5)
    assert document.place(("list", 1, "sub", "lit")) == (10, 9)
    assert document.place(("list", 1, "deep", 0, "z")) == (12, 5)
    assert document.place(("x", "y", "missing")) == (3, 4)
    assert document.place(("nowhere",)) == (1, 1)


def test_a_table_defined_in_pieces_is_no_duplicate() -> None:
    document = toml_file.parse("[a.b]\nx = 1\n[a]\ny = 2\n")
    assert document.values == {"a": {"b": {"x": 1}, "y": 2}}
    assert document.duplicates == []
