"""docs/errors.md has every code there is, and no other."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re

import rivermouth
from rivermouth.errors import RivermouthError, TableRestored
from rivermouth.observe.events import LogCheckpointFailed
from tests.docs.markdown import ROOT, codes, prose, rows

ERRORS = ROOT / "docs" / "errors.md"
CODE = re.compile(r"[A-Z][a-z]+(?:[A-Z][a-z]+)+")


def kinds(root: type[RivermouthError]) -> set[type[RivermouthError]]:
    return {root}.union(*(kinds(kind) for kind in root.__subclasses__()))


def section(title: str) -> dict[str, list[str]]:
    """The table under a title, by its first column."""
    text = prose(ERRORS).split(f"## {title}\n")[1].split("\n## ")[0]
    found = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| `"):
            found[codes(cells[0])[0]] = cells
    return found


def constants(calls: tuple[str, ...], *folders: str) -> set[str]:
    """The code words that stand in calls of these functions."""
    found = set()
    for folder in folders:
        for file in (ROOT / "rivermouth" / folder).glob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if not isinstance(node, ast.Call):
                    continue
                name = (
                    node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                )
                if name in calls:
                    values = [*node.args, *(keyword.value for keyword in node.keywords)]
                    found |= {
                        v.value for v in values if isinstance(v, ast.Constant) and isinstance(v.value, str)
                    }
    return {word for word in found if CODE.fullmatch(word)}


def test_every_error_is_documented_and_says_whether_it_is_retried():
    for module in pkgutil.walk_packages(rivermouth.__path__, "rivermouth."):
        if module.name != "rivermouth.spark.worker_daemon":
            importlib.import_module(module.name)
    # One whose name begins with an underscore is caught where it is raised, and never told.
    ours = {k for k in kinds(RivermouthError) - {RivermouthError} if not k.__name__.startswith("_")}
    ours = {k for k in ours if k.__module__.startswith("rivermouth.")}
    documented = section("While a pipeline runs")
    assert {kind.code: "yes" if kind.retryable else "no" for kind in ours} == {
        code: cells[1] for code, cells in documented.items()
    }


def test_every_problem_of_a_config_is_documented():
    made = constants(("Finding", "problem", "SyntaxProblem"), "config", "sources")
    # Two that are not written in such a call: a default, and an error of the table above.
    assert made | {"InvalidSyntax", "InvalidTableUri"} == set(section("In a config file"))


def test_the_golden_problems_have_documented_codes():
    golden = (ROOT / "tests" / "config" / "golden").glob("*.txt")
    seen = {
        match[1]
        for file in golden
        for match in re.finditer(r"^\S+:\d+:\d+: (\w+): ", file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert seen
    assert seen <= set(section("In a config file"))


def test_every_warning_is_documented():
    made = constants(("warn", "_warn", "SourceWarning"), "sources", "pipeline")
    # Two that an event of its own tells.
    made |= {LogCheckpointFailed.__name__, TableRestored.code}
    assert made == set(section("Warnings"))


def test_the_errors_of_the_rivven_document_have_codes_of_their_own():
    table = {row[0]: codes(row[1])[0] for row in rows(ROOT / "docs" / "delta-sink.md", "Rivven")}
    assert len(set(table.values())) == 4
    assert set(table.values()) <= set(section("While a pipeline runs"))
