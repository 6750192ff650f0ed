"""`rivermouth check`: every problem of a config file, or what its pipeline will do."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer


def check(
    file: Annotated[Path, typer.Argument(help="The config file, YAML or TOML.", metavar="FILE")],
) -> None:
    """Check a config file: print every problem, or what the pipeline will do."""
    from rivermouth import sources
    from rivermouth.config.load import read

    loaded = read(file, sources.models())
    for problem in loaded.problems:
        typer.echo(problem.render(loaded.file))
    if loaded.config is None:
        raise typer.Exit(1)

    from rivermouth.config.describe import describe

    _print(describe(loaded))
    typer.secho(f"{loaded.file} is valid", fg="green")


def _print(parts: Iterable[tuple[str, list[tuple[str, str]]]]) -> None:
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    for title, facts in parts:
        if not console.is_terminal:  # what goes into a pipe is neither wrapped nor padded
            typer.echo(title)
            for label, sentence in facts:
                typer.echo(f"  {label:<10}  {sentence}")
            continue
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim", no_wrap=True, min_width=10)
        table.add_column(overflow="fold")
        for label, sentence in facts:
            table.add_row(label, Text(sentence))
        console.print(Text(title, style="bold"))
        console.print(Padding(table, (0, 0, 0, 2), expand=False))
