"""TOML: values from the standard parser, places from tree-sitter, which keeps them."""

from __future__ import annotations

import contextlib
import datetime
import re
import sys
from collections.abc import Iterator
from typing import Any

import tree_sitter
import tree_sitter_toml

from rivermouth.config.checks import Path
from rivermouth.config.document import Document, Place, SyntaxProblem

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

_KEYS = ("bare_key", "quoted_key", "dotted_key")


def parse(text: str) -> Document:
    """Parse TOML; raises `SyntaxProblem`."""
    document = Document()
    _Places(document, text).note()
    try:
        document.values = _plain(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        if document.duplicates:
            document.values = {}
            return document
        raise _syntax_problem(text, error) from None
    except RecursionError:
        raise SyntaxProblem(Place(1, 1), "the file is nested too deeply") from None
    document.duplicates.clear()  # what the parser accepts is no duplicate
    return document


def _syntax_problem(text: str, error: tomllib.TOMLDecodeError) -> SyntaxProblem:
    message = str(error)
    found = re.search(r" \(at line (\d+), column (\d+)\)$", message)
    if found is not None:
        return SyntaxProblem(Place(int(found[1]), int(found[2])), message[: found.start()])
    lines = text.split("\n")
    return SyntaxProblem(Place(len(lines), len(lines[-1]) + 1), message.removesuffix(" (at end of document)"))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat().replace("+00:00", "Z")
    return value


class _Places:
    """Walks the syntax tree and notes where each key and value stands."""

    def __init__(self, document: Document, text: str) -> None:
        self.document = document
        source = text.encode()
        self.lines = source.split(b"\n")
        self.root = (
            tree_sitter.Parser(tree_sitter.Language(tree_sitter_toml.language())).parse(source).root_node
        )
        self.counts: dict[Path, int] = {}  # elements so far of each [[array]]

    def note(self) -> None:
        for node in self.root.named_children:
            if node.type == "pair":
                self.pair(node, ())
            elif node.type in ("table", "table_array_element"):
                self.table(node)

    def table(self, node: tree_sitter.Node) -> None:
        header = next((child for child in node.named_children if child.type in _KEYS), None)
        if header is None:
            return
        path: Path = ()
        parts = list(self.keys(header))
        for number, (name, place) in enumerate(parts):
            path = (*path, name)
            last = number == len(parts) - 1
            if last and node.type == "table":
                if path in self.document.places:
                    self.document.duplicates.append((path, place))
                    return
                self.document.places.setdefault(path, place)
            if last or path not in self.document.keys:
                self.document.keys.setdefault(path, place)
            if last and node.type == "table_array_element":
                self.counts[path] = self.counts.get(path, -1) + 1
            if path in self.counts:
                path = (*path, self.counts[path])
                self.document.places.setdefault(path, self.at(node))
        for child in node.named_children:
            if child.type == "pair":
                self.pair(child, path)

    def pair(self, node: tree_sitter.Node, path: Path) -> None:
        if len(node.named_children) < 2:
            return
        key, value = node.named_children[0], node.named_children[1]
        place = self.at(key)
        for name, place in self.keys(key):
            path = (*path, name)
            self.document.keys.setdefault(path, place)
        if path in self.document.places:
            self.document.duplicates.append((path, place))
            return
        self.value(value, path)

    def value(self, node: tree_sitter.Node, path: Path) -> None:
        self.document.places.setdefault(path, self.at(node))
        if node.type == "inline_table":
            for child in node.named_children:
                if child.type == "pair":
                    self.pair(child, path)
        elif node.type == "array":
            items = [child for child in node.named_children if child.type != "comment"]
            for index, item in enumerate(items):
                self.value(item, (*path, index))

    def keys(self, node: tree_sitter.Node) -> Iterator[tuple[str, Place]]:
        if node.type == "dotted_key":
            for child in node.named_children:
                yield from self.keys(child)
        else:
            text = (node.text or b"").decode()
            if node.type == "quoted_key":
                with contextlib.suppress(tomllib.TOMLDecodeError):  # the parser will say so
                    text = next(iter(tomllib.loads(f"{text} = 0")))
            yield text, self.at(node)

    def at(self, node: tree_sitter.Node) -> Place:
        row, column = node.start_point
        # tree-sitter counts bytes, people count characters.
        return Place(row + 1, len(self.lines[row][:column].decode(errors="replace")) + 1)
