"""Reads what the documents show: code blocks, tables, links."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True)
class Block:
    """A fenced code block."""

    file: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.file.name}:{self.line}"


def blocks(*languages: str) -> list[Block]:
    """The code blocks of all documents in one of these languages."""
    found = []
    for file in DOCUMENTS:
        text = file.read_text(encoding="utf-8")
        for match in _FENCE.finditer(text):
            if match[1] in languages:
                found.append(Block(file, text[: match.start()].count("\n") + 1, match[1], match[2]))
    return found


def prose(file: Path) -> str:
    """A document without its code blocks."""
    return _FENCE.sub("", file.read_text(encoding="utf-8"))


def codes(text: str) -> list[str]:
    """The `code` words of a text."""
    return _CODE.findall(text)


def rows(file: Path, first: str) -> list[list[str]]:
    """The rows of the tables whose first head is `first`."""
    found: list[list[str]] = []
    inside = False
    for line in prose(file).splitlines():
        if not line.startswith("|"):
            inside = False
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]
        if cells[0] == first:
            inside = True
        elif inside and not set(line) <= set("|-: "):
            found.append(cells)
    return found
