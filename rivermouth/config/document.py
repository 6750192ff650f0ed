"""A parsed file: plain values, and where in the file each of them stands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rivermouth.config.checks import Path


class Place(NamedTuple):
    """A line and a column, both counted from 1."""

    line: int
    column: int


class SyntaxProblem(Exception):
    """The file cannot be parsed."""

    def __init__(self, place: Place, message: str, hint: str = "", code: str = "InvalidSyntax") -> None:
        super().__init__(message)
        self.place = place
        self.message = message
        self.hint = hint
        self.code = code


@dataclass
class Document:
    """Values by path, with the places of keys and values."""

    values: Any = None
    keys: dict[Path, Place] = field(default_factory=dict)
    places: dict[Path, Place] = field(default_factory=dict)
    duplicates: list[tuple[Path, Place]] = field(default_factory=list)  # a key's second place, by path

    def place(self, path: Path, *, at_key: bool = False) -> Place:
        """Where to look for a problem: at a scalar, else at the key, else at what surrounds it."""
        while path:
            value_place = None if at_key or self.is_branch(path) else self.places.get(path)
            found = value_place or self.keys.get(path) or self.places.get(path)
            if found is not None:
                return found
            path = path[:-1]
        return Place(1, 1)

    def is_branch(self, path: Path) -> bool:
        """Whether a mapping or a list is there, and no scalar."""
        return isinstance(self.get(path), (dict, list))

    def get(self, path: Path) -> Any:
        """The value at a path, or None."""
        value = self.values
        for step in path:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                return None
        return value


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every scalar of a tree, with its path, in order."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaves(item, (*path, index))
    else:
        yield path, value
