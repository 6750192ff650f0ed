"""How the operator's tools print: sized to a terminal, and neither wrapped nor padded in a pipe."""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rivermouth.observe.figures import printable, whole

_INDENT = "  "
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Format(str, enum.Enum):
    """For people or for programs."""

    table = "table"
    json = "json"


def iso(moment: datetime | int | None) -> str | None:
    """A moment in UTC, to the microsecond where it has any: 2026-01-01T12:00:00Z.

    The moment of a record, in microseconds since 1970, may lie in a year that Python does not know.
    """
    from numpy import datetime64

    if moment is None:
        return None
    micros = moment if isinstance(moment, int) else (moment - _EPOCH) // timedelta(microseconds=1)
    return str(datetime64(micros, "us")).removesuffix(".000000") + "Z"


def seconds(moment: datetime | int | None) -> str:
    """A moment for people, as it stands in logs; a dash for one that is not known."""
    text = iso(moment)
    return "-" if text is None else re.sub(r"\.\d+", "", text)


def number(value: int | None) -> str:
    """A number for people; a dash for one that is not known."""
    return "-" if value is None else whole(value)


def one_line(text: str) -> str:
    """Text from anywhere, which may hold line ends and worse, on one line."""
    return printable(text).replace("\n", "\\n")


def print_json(value: Any) -> None:
    """Print a value as indented JSON."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_facts(title: str, facts: Sequence[tuple[str, str]]) -> None:
    """Print what is to be said of one thing: its name, then a line for each label and sentence."""
    console = Console(highlight=False)
    if not console.is_terminal:
        typer.echo(title)
        for label, sentence in facts:
            typer.echo(f"{_INDENT}{label:<12}  {sentence}".rstrip())
        return
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True, min_width=12)
    table.add_column(overflow="fold")
    for label, sentence in facts:
        table.add_row(label, Text(sentence))
    console.print(Text(title, style="bold"))
    console.print(Padding(table, (0, 0, 0, 2), expand=False))


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[str]) -> None:
    """Print rows under their heads; columns that are not named in `left` hold numbers.

    A row too long for a terminal is left to the terminal: a number that is cut is a wrong number.
    """
    console = Console(highlight=False)
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    for row in [heads, *rows]:
        cells = [
            cell.ljust(width) if head in left else cell.rjust(width)
            for head, cell, width in zip(heads, row, widths, strict=True)
        ]
        line = (_INDENT + _INDENT.join(cells)).rstrip()
        console.print(Text(line, style="bold" if row is heads else ""), soft_wrap=True)
