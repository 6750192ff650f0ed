"""The command line: each command is a function in a module of its name."""

from __future__ import annotations

from typing import Annotated

import typer

from rivermouth import __version__
from rivermouth.cli.check import check
from rivermouth.cli.demo import demo
from rivermouth.cli.doctor import doctor
from rivermouth.cli.init import init
from rivermouth.cli.run import run
from rivermouth.cli.schema import schema
from rivermouth.cli.setup import setup

app = typer.Typer(
    name="rivermouth",
    help="Land event streams in Delta Lake tables: one config file, every event exactly once.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"rivermouth {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Land event streams in Delta Lake tables: one config file, every event exactly once."""


for group, commands in {
    "Pipelines": (init, check, run, demo),
    "This machine and your editor": (doctor, setup, schema),
}.items():
    for command in commands:
        app.command(rich_help_panel=group)(command)
