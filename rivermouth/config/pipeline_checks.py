"""What must hold between the parts of a pipeline: names, which sink reads what, which table lies where."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from rivermouth.config.checks import Finding, suggest
from rivermouth.config.uri import is_inside, local_path
from rivermouth.errors import InvalidTableUri

NAME = re.compile(r"[A-Za-z0-9._-]+")
_NAME_HINT = "use letters, digits, '.', '_' and '-'"


def names(pipeline: str | None, sinks: Iterable[str], sources: Iterable[str]) -> list[Finding]:
    """Names stand in the table's log, so their characters are few."""
    found = []
    if pipeline is not None and not NAME.fullmatch(pipeline):
        found.append(Finding(("pipeline",), "InvalidName", "{value} cannot be a pipeline's name", _NAME_HINT))
    for name in sinks:
        if not NAME.fullmatch(name):
            found.append(
                Finding(("sinks", name), "InvalidName", f"{name!r} cannot be a sink's name", _NAME_HINT, True)
            )
    for name in sources:
        if not name.strip():
            found.append(Finding(("sources", name), "InvalidName", "a source needs a name", "", True))
    return found


def routing(sinks: Mapping[str, Mapping[str, Any]], sources: Mapping[str, Any]) -> list[Finding]:
    """Check that each sink's source is there and has the topics the sink names."""
    found = []
    for name, values in sinks.items():
        source = values.get("source")
        if source is None:
            continue
        if not source:
            if len(sources) > 1:
                hint = f"add source: one of {', '.join(sources)}"
                message = f"sink {name} must say which source it reads"
                found.append(Finding(("sinks", name), "MissingKey", message, hint, True))
                continue
            source = next(iter(sources), "")
        elif source not in sources:
            hint = suggest(source, list(sources), "the sources are")
            found.append(
                Finding(("sinks", name, "source"), "UnknownSource", "there is no source {value}", hint)
            )
        known = getattr(sources.get(source), "topics", None)
        if not isinstance(known, (list, tuple)) or not all(isinstance(topic, str) for topic in known):
            continue
        for index, topic in enumerate(values.get("topics") or ()):
            if topic not in known:
                hint = suggest(topic, known, "it reads")
                message = f"source {source} does not read the topic {{value}}"
                found.append(Finding(("sinks", name, "topics", index), "UnknownTopic", message, hint))
    return found


class _Table(NamedTuple):
    """A table that a sink writes: which sink, by which key, where."""

    sink: str
    key: str
    path: str
    overwrite: bool

    def what(self) -> str:
        return f"the {'dead letters' if self.key == 'dead_letter_uri' else 'table'} of sink {self.sink}"


def tables(sinks: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    """Check that no table is in another's way."""
    mains: list[_Table] = []
    letters: list[_Table] = []
    for name, values in sinks.items():
        config = values.get("config") or {}
        overwrite = config.get("write_mode") == "overwrite"
        for key, kept in (("table_uri", mains), ("dead_letter_uri", letters)):
            if key == "dead_letter_uri" and config.get("on_bad_record") in ("fail", "drop"):
                continue
            try:
                kept.append(_Table(name, key, local_path(config[key]), overwrite))
            except (KeyError, InvalidTableUri):
                continue  # reported already, or not known
    return [*_overwritten(mains), *_mixed(letters, mains), *_nested(mains, letters)]


def _at(table: _Table, message: str) -> Finding:
    return Finding(("sinks", table.sink, "config", table.key), "ConflictingTables", message)


def _overwritten(mains: list[_Table]) -> Iterable[Finding]:
    for index, table in enumerate(mains):
        for other in mains[:index]:
            if table.path == other.path and (table.overwrite or other.overwrite):
                message = f"sink {other.sink} writes to the same table, and overwrite would erase its rows"
                yield _at(table, message)


def _mixed(letters: list[_Table], mains: list[_Table]) -> Iterable[Finding]:
    for table in letters:
        for other in mains:
            if table.path == other.path:
                yield _at(table, f"the dead letters of sink {table.sink} would go into {other.what()}")


def _nested(mains: list[_Table], letters: list[_Table]) -> Iterable[Finding]:
    outers = {table.path: table for table in reversed([*mains, *letters])}
    reported = set()
    for table in [*mains, *letters]:
        for path, outer in outers.items():
            # The dead letters lie beside their table unless told otherwise, so they would only say it again.
            if table.sink not in reported and path != table.path and is_inside(table.path, path):
                reported.add(table.sink)
                yield _at(
                    table, f"{table.what()} would lie inside {outer.what()}, whose vacuum would delete it"
                )
