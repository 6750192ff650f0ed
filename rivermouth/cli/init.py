"""`rivermouth init`: a commented starter file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def init(
    folder: Annotated[Path, typer.Argument(help="Where to write it.", file_okay=False)] = Path(),
    toml: Annotated[bool, typer.Option("--toml", help="Write TOML, not YAML.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")] = False,
) -> None:
    """Write a commented starter file, rivermouth.yaml, that runs as it is."""
    from rivermouth.config.starter import TOML, YAML

    file = folder / ("rivermouth.toml" if toml else "rivermouth.yaml")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with file.open("w" if force else "x", encoding="utf-8") as out:
            out.write(TOML if toml else YAML)
    except FileExistsError:
        typer.echo(f"{file} is there already (--force overwrites it)", err=True)
        raise typer.Exit(1) from None
    typer.echo(f"wrote {file}; next: rivermouth check {file}, then rivermouth run {file} --once")
