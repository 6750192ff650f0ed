"""Loads a config file: YAML or TOML in, a `PipelineConfig` or every problem out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from rivermouth.config.checks import Finding, Path
from rivermouth.config.document import Document, Place, SyntaxProblem, leaves
from rivermouth.config.env import substitute
from rivermouth.config.model import Model, PipelineConfig
from rivermouth.config.problems import InvalidConfigFile, Problem, Report, key_name
from rivermouth.config.validate import Validation

__all__ = ["InvalidConfigFile", "Loaded", "Problem", "load", "read"]

EXTENSIONS = (".yaml", ".yml", ".toml")


@dataclass
class Loaded:
    """What a file holds: a config or problems, and which values came from the environment."""

    file: str
    config: PipelineConfig | None
    problems: list[Problem]
    templates: dict[Path, str]  # such values as they stand in the file


def load(
    path: str | os.PathLike[str],
    connectors: Mapping[str, type[Model]],
    environ: Mapping[str, str] = os.environ,
) -> PipelineConfig:
    """Load a config file; raises `InvalidConfigFile` with every problem in it."""
    loaded = read(path, connectors, environ)
    if loaded.config is None:
        raise InvalidConfigFile(loaded.file, loaded.problems)
    return loaded.config


def read(
    path: str | os.PathLike[str],
    connectors: Mapping[str, type[Model]],
    environ: Mapping[str, str] = os.environ,
) -> Loaded:
    """Load a config file without raising."""
    file = os.fspath(path)
    try:
        document = _parse(FilePath(path))
    except SyntaxProblem as error:
        return Loaded(file, None, [Problem((), *error.place, error.code, error.message, error.hint)], {})
    report = Report(document)
    for where, place in document.duplicates:
        first = document.keys.get(where, place)
        message = f"the key {where[-1]} stands in line {first.line} already"
        report.add(Finding(where, "DuplicateKey", message, "remove one of them"), place)
    if document.values == {} and document.duplicates:  # TOML gives up at a duplicate
        return Loaded(file, None, report.sorted(), {})
    _substitute(report, environ)
    config = Validation(report, connectors).pipeline(FilePath(path).stem)
    return Loaded(file, None if report.problems else config, report.sorted(), report.templates)


def _parse(path: FilePath) -> Document:
    start = Place(1, 1)
    extension = path.suffix.lower()
    if path.is_dir():
        raise SyntaxProblem(start, "this is a folder, not a config file", code="UnreadableFile")
    if extension not in EXTENSIONS:
        raise SyntaxProblem(start, f"a config file ends in {', '.join(EXTENSIONS)}", code="UnknownFileType")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        hint = "`rivermouth init` writes a starter file"
        raise SyntaxProblem(start, "there is no such file", hint, "UnreadableFile") from None
    except OSError as error:
        raise SyntaxProblem(
            start, f"the file cannot be read: {error.strerror}", code="UnreadableFile"
        ) from None
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        column = error.start - (before.rfind(b"\n") + 1)
        place = Place(before.count(b"\n") + 1, column + 1)
        raise SyntaxProblem(place, "the file is not UTF-8", "save it as UTF-8", "InvalidEncoding") from None
    if extension == ".toml":
        from rivermouth.config.toml_file import parse
    else:
        from rivermouth.config.yaml_file import parse
    try:
        document = parse(text)
    except RecursionError:
        raise SyntaxProblem(start, "the file is nested too deeply to be read") from None
    except ValueError as error:  # a number of thousands of digits
        raise SyntaxProblem(start, f"a value cannot be read: {error}") from None
    if document.values is None or (document.values == {} and not document.duplicates):
        raise SyntaxProblem(
            start, "the file is empty", "`rivermouth init` writes a starter file", "EmptyFile"
        )
    if not isinstance(document.values, dict):
        raise SyntaxProblem(start, "the file must hold keys: pipeline, sources, sinks")
    return document


def _substitute(report: Report, environ: Mapping[str, str]) -> None:
    """Put variables in; note where, report what is missing, and what has no value at all."""

    def build(value: Any, path: Path) -> Any:
        if isinstance(value, dict):
            return {key: build(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [build(item, (*path, index)) for index, item in enumerate(value)]
        if not isinstance(value, str) or "$" not in value:
            return value
        done = substitute(value, environ)
        for name in dict.fromkeys(done.missing):
            hint = f"set it, or write ${{{name}:-default}}"
            found.append(Finding(path, "MissingVariable", f"the environment has no {name}", hint))
        for reference in done.malformed:
            hint = "write ${NAME}, ${NAME:-default}, or $$ for a dollar"
            what = "a reference in it" if report.is_hidden(path) else repr(reference)
            found.append(Finding(path, "InvalidVariable", f"{what} cannot be read", hint))
        if done.used:
            report.templates[path] = value
        return done.text

    found: list[Finding] = []
    report.values = build(report.document.values, ())
    for path, value in leaves(report.values):
        if value is None:
            hint = "give it one, or remove the key"
            found.append(Finding(path, "InvalidValue", f"{key_name(path)} has no value", hint, at_key=True))
    for finding in found:
        report.add(finding)
    report.muted.update(finding.path for finding in found)
