"""`rivermouth doctor`: what was found on this machine, and what to do about what is missing."""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import typer
from rich.console import Console
from rich.text import Text

from rivermouth.errors import SetupError
from rivermouth.spark import cache, jars, java, machine

_STYLES = {"ok": "green", "note": "yellow", "missing": "red"}
_NEXT_LINE = "\n" + " " * 25
_LEAST_MEMORY = 2 * 1024**3
_LEAST_DISK = 1024**3


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at; only `missing` keeps a pipeline from running."""

    name: str
    state: Literal["ok", "note", "missing"]
    found: str
    remedy: str = ""


def examine() -> list[Finding]:
    """Look at everything a pipeline needs from this machine, without starting Java."""
    checks: tuple[Callable[[], Finding], ...] = (
        _python, _java, _spark, _jars, _memory, _cores, _cache, _temporary, _here,
    )  # fmt: skip
    return [check() for check in checks]


def doctor() -> None:
    """Show what was found on this machine and what to do about what is missing."""
    findings = examine()
    console = Console(highlight=False)
    for finding in findings:
        # Built from Text, because a path may hold what rich takes for markup.
        line = Text(f"{finding.name:<16}").append(f"{finding.state:<9}", _STYLES[finding.state])
        line.append(_NEXT_LINE.join(finding.found.splitlines()))
        if finding.remedy:
            line.append(_NEXT_LINE).append(finding.remedy, "bold")
        console.print(line, soft_wrap=True)
    if any(finding.state == "missing" for finding in findings):
        raise typer.Exit(1)


def _python() -> Finding:
    found = f"{platform.python_version()} at {sys.executable}"
    return Finding("Python", "ok", found)


def _java() -> Finding:
    try:
        chosen = java.find()
    except SetupError as error:
        return Finding("Java", "missing", error.message, error.remedy)
    passed_over = "".join(
        f"\nnot used: {reason}" for reason in chosen.skipped if "there is none" not in reason
    )
    return Finding("Java", "ok", f"{chosen.version} at {chosen.home}, from {chosen.origin}{passed_over}")


def _spark() -> Finding:
    versions: list[str] = []
    for package in ("pyspark", "deltalake", "pyarrow"):
        try:
            versions.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            remedy = "install rivermouth again: `pip install rivermouth`"
            return Finding("Spark", "missing", f"{package} is not installed", remedy)
    return Finding("Spark", "ok", ", ".join(versions))


def _jars() -> Finding:
    confs = ("delta", "kafka")
    absent = jars.missing(confs)
    if absent:
        remedy = "run `rivermouth setup`; without it the first start fetches them"
        return Finding("jars", "note", f"not fetched yet: {', '.join(absent)}", remedy)
    files = jars.ensure(confs)
    megabytes = sum(path.stat().st_size for path in files) / 1e6
    return Finding("jars", "ok", f"{len(files)} files, {megabytes:.0f} MB in {jars.folder()}")


def _memory() -> Finding:
    total = machine.memory()
    found = f"{total / 1024**3:.1f} GiB"
    if total < _LEAST_MEMORY:
        return Finding("memory", "note", found, "2 GiB is the least that is comfortable")
    return Finding("memory", "ok", found)


def _cores() -> Finding:
    return Finding("cores", "ok", str(machine.cores()))


def _cache() -> Finding:
    path = cache.directory()
    remedy = "set RIVERMOUTH_CACHE_DIR to a directory you can write"
    return _writable("cache", path, remedy)


def _temporary() -> Finding:
    return _writable("temporary files", Path(tempfile.gettempdir()), "set TMPDIR to a directory with space")


def _here() -> Finding:
    remedy = "needed only for tables with a relative table_uri: change to a directory you can write"
    finding = _writable("this directory", Path.cwd(), remedy)
    return Finding(finding.name, "note", finding.found, remedy) if finding.state == "missing" else finding


def _writable(name: str, path: Path, remedy: str) -> Finding:
    """Whether a directory, or the nearest one above it that exists, takes a file."""
    nearest = next(parent for parent in (path, *path.parents) if parent.exists())
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        return Finding(name, "missing", f"{path} cannot be written: {error.strerror or error}", remedy)
    free = shutil.disk_usage(nearest).free
    found = f"{path}, {free / 1024**3:.1f} GiB free"
    if free < _LEAST_DISK:
        return Finding(name, "note", found, "that is little")
    return Finding(name, "ok", found)
