"""YAML, as version 1.2 means it: `no` and `12:30` are texts, a date is a text, a key stands once."""

from __future__ import annotations

import re
from typing import Any

import yaml
from yaml.composer import Composer
from yaml.parser import Parser
from yaml.reader import Reader, ReaderError
from yaml.resolver import BaseResolver
from yaml.scanner import Scanner

from rivermouth.config.checks import Path
from rivermouth.config.document import Document, Place, SyntaxProblem

_TAG = "tag:yaml.org,2002:"
_MOST_NODES = 100_000  # aliases can make a small file enormous


class _Loader(Reader, Scanner, Parser, Composer, BaseResolver):
    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)
        Composer.__init__(self)
        BaseResolver.__init__(self)


for _name, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9][0-9_]*|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
    ("merge", r"<<", ["<"]),
):
    _Loader.add_implicit_resolver(_TAG + _name, re.compile(f"(?:{_pattern})$"), _first)


def parse(text: str) -> Document:
    """Parse YAML; raises `SyntaxProblem`."""
    try:
        root = _Loader(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        raise _syntax_problem(text, error) from None
    except ReaderError as error:
        line = text.count("\n", 0, error.position)
        column = error.position - (text.rfind("\n", 0, error.position) + 1)
        message = f"the character U+{ord(text[error.position]):04X} is not allowed in YAML"
        raise SyntaxProblem(Place(line + 1, column + 1), message, "remove it") from None
    document = Document()
    if root is not None:
        document.values = _Builder(document).build(root, (), ())
    return document


def _syntax_problem(text: str, error: yaml.MarkedYAMLError) -> SyntaxProblem:
    mark = error.problem_mark or error.context_mark
    place = Place(mark.line + 1, mark.column + 1) if mark else Place(1, 1)
    if mark is not None and text[mark.index : mark.index + 1] == "\t":
        return SyntaxProblem(place, "a tab cannot indent or separate in YAML", "use spaces")
    if mark is not None and text[mark.index : mark.index + 1] in ("%", "@", "`"):
        return SyntaxProblem(place, "a text cannot begin with this character", "put the text in quotes")
    if mark is not None and "${" in text.split("\n")[mark.line]:
        return SyntaxProblem(place, "this cannot be parsed", "between [ ] or { }, put ${NAME} in quotes")
    message = (error.problem or error.context or "cannot be parsed").replace("<", "").replace(">", "")
    hint = "a text with ': ' in it needs quotes" if "mapping values" in message else ""
    if "expected a single document" in (error.context or ""):
        message, hint = "the file holds two YAML documents", "remove the line ---"
    return SyntaxProblem(place, message, hint)


class _Builder:
    """Turns nodes into plain values, and notes their places."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.nodes = 0

    def build(self, node: yaml.Node, path: Path, above: tuple[yaml.Node, ...]) -> Any:
        self.nodes += 1
        if any(node is parent for parent in above):
            raise SyntaxProblem(_place(node), "an alias contains itself")
        if self.nodes > _MOST_NODES or len(path) > 50:
            raise SyntaxProblem(_place(node), "the file is too large or too deep, aliases included")
        self.document.places.setdefault(path, _place(node))
        above = (*above, node)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*path, index), above) for index, item in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, path, above)
        return _scalar(node)

    def mapping(self, node: yaml.MappingNode, path: Path, above: tuple[yaml.Node, ...]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        merged: list[yaml.MappingNode] = []
        for key_node, value_node in node.value:
            if key_node.tag == _TAG + "merge":
                merged += _merged(value_node)
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                raise SyntaxProblem(_place(key_node), "a key must be a text", "a ${NAME} needs quotes here")
            key, here = key_node.value, (*path, key_node.value)
            if key in values:
                self.document.duplicates.append((here, _place(key_node)))
                continue
            self.document.keys[here] = _place(key_node)
            values[key] = self.build(value_node, here, above)
        for other in merged:
            if any(other is parent for parent in above):
                raise SyntaxProblem(_place(other), "an alias contains itself")
            for key, value in self.mapping_apart(other, path, above, values):
                values[key] = value
        return values

    def mapping_apart(
        self, node: yaml.MappingNode, path: Path, above: tuple[yaml.Node, ...], known: dict[str, Any]
    ) -> list[tuple[str, Any]]:
        """The items of a merged mapping that are not known already: keys of its own win over merged ones."""
        pairs = [
            pair
            for pair in node.value
            if not (isinstance(pair[0], yaml.ScalarNode) and pair[0].value in known)
        ]
        rest = yaml.MappingNode(node.tag, pairs, node.start_mark, node.end_mark)
        return list(self.mapping(rest, path, (*above, node)).items())


def _merged(node: yaml.Node) -> list[yaml.MappingNode]:
    """The mappings that `<<:` names, one or a list of them."""
    candidates = node.value if isinstance(node, yaml.SequenceNode) else [node]
    for candidate in candidates:
        if not isinstance(candidate, yaml.MappingNode):
            raise SyntaxProblem(_place(candidate), "<< merges a mapping or a list of mappings")
    return list(candidates)


def _place(node: yaml.Node) -> Place:
    return Place(node.start_mark.line + 1, node.start_mark.column + 1)


def _scalar(node: yaml.Node) -> Any:
    text, kind = str(node.value), str(node.tag).removeprefix(_TAG)
    try:
        if kind == "null":
            return None
        if kind == "bool":
            return {"true": True, "false": False}[text.lower()]
        if kind == "int":
            prefix = text[:2].lower()
            return int(text[2:], {"0x": 16, "0o": 8}[prefix]) if prefix in ("0x", "0o") else int(text)
        if kind == "float":
            return float(text.replace("_", "").replace(".inf", "inf").replace(".nan", "nan").lower())
    except (ValueError, KeyError):
        raise SyntaxProblem(_place(node), f"the value is not of the type {kind}") from None
    if kind in ("str", "merge"):
        return text
    raise SyntaxProblem(_place(node), f"the tag {node.tag} is not understood", "remove the tag")
