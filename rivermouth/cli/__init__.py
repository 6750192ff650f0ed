"""The command line: each command is a function in a module of its name."""

from __future__ import annotations

import logging
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from rivermouth import __version__
from rivermouth.cli.check import check
from rivermouth.cli.dead_letters import app as dead_letters
from rivermouth.cli.demo import demo
from rivermouth.cli.doctor import doctor
from rivermouth.cli.init import init
from rivermouth.cli.offsets import app as offsets
from rivermouth.cli.replay import replay
from rivermouth.cli.replay_letters import replay as replay_letters
from rivermouth.cli.reset import reset
from rivermouth.cli.run import run
from rivermouth.cli.schema import schema
from rivermouth.cli.setup import setup
from rivermouth.cli.status import status
from rivermouth.errors import ConfigError, RivermouthError


class Commands(TyperGroup):
    """The commands; an error that was foreseen is one message and exit 1, with --verbose also its trace."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # whoever read our output has seen enough: typer ends quietly
            raise
        except (RivermouthError, OSError) as error:
            verbose = logging.getLogger("rivermouth").isEnabledFor(logging.DEBUG)
            if verbose and not isinstance(error, ConfigError):  # a mistake in a file has its place, no trace
                raise
            typer.echo(_told(error), err=True)
            raise typer.Exit(1) from None


def _told(error: RivermouthError | OSError) -> str:
    if isinstance(error, RivermouthError):
        return str(error)
    about = f"{error.filename}: " if error.filename else ""
    return f"{type(error).__name__}: {about}{error.strerror or error}"


app = typer.Typer(
    name="rivermouth",
    cls=Commands,
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


_OPERATOR = "For the operator"

for group, commands in {
    "Pipelines": (init, check, run, demo),
    _OPERATOR: (status, replay),
    "This machine and your editor": (doctor, setup, schema),
}.items():
    for command in commands:
        app.command(rich_help_panel=group)(command)

offsets.command()(reset)
dead_letters.command("replay")(replay_letters)
app.add_typer(offsets, name="offsets", rich_help_panel=_OPERATOR)
app.add_typer(dead_letters, name="dead-letters", rich_help_panel=_OPERATOR)
