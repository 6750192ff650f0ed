"""Each guarantee names the test that proves it, and each scenario of the chaos suite proves one."""

from __future__ import annotations

import ast

import pytest

from tests.docs.markdown import ROOT, codes, rows

NAMED = [
    code
    for row in rows(ROOT / "docs" / "guarantees.md", "promise")
    for code in codes(row[2])
    if code.startswith("tests/")
]


@pytest.mark.parametrize("name", NAMED)
def test_the_test_that_is_named_exists(name):
    file, _, test = name.partition("::")
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    made = {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    assert not test or test in made


def test_every_scenario_proves_a_guarantee():
    scenarios = {f"tests/chaos/{file.name}" for file in (ROOT / "tests" / "chaos").glob("test_*.py")}
    assert scenarios - {name.partition("::")[0] for name in NAMED} == {"tests/chaos/test_oracle.py"}
