"""How an operator names a place in a source: an end of it, a moment, or offsets as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer

from rivermouth.cli.times import moment
from rivermouth.errors import ConfigError

if TYPE_CHECKING:
    from rivermouth.sources.base import Place

HELP = 'earliest, latest, an ISO timestamp, or offsets as JSON: {"orders": {"0": 1200}}'


def parse_place(text: str, option: str) -> Place:
    """Read a place; what it is not is told with what it may be."""
    if text == "earliest":
        return "earliest"
    if text == "latest":
        return "latest"
    if not text.lstrip().startswith("{"):
        try:
            return moment(text, option)
        except ConfigError:
            raise ConfigError(f"{option}: {text!r} is no place", hint=f"it may be {HELP}") from None
    try:
        return _offsets(json.loads(text))
    except (ValueError, TypeError, AttributeError):
        raise ConfigError(
            f"{option}: {text!r} is no offsets by topic and partition",
            hint='write {"orders": {"0": 1200, "1": "latest"}}, as `rivermouth offsets show` does',
        ) from None


def _offsets(tree: Any) -> Place:
    found = {}
    for topic, numbers in tree.items():
        found[topic] = {int(number): at for number, at in numbers.items()}
        for at in found[topic].values():
            number = isinstance(at, int) and not isinstance(at, bool) and at >= 0
            if not number and at not in ("earliest", "latest"):
                raise ValueError(at)
    if not any(found.values()):
        raise ValueError(tree)
    return found


def confirm(question: str, yes: bool) -> None:
    """Ask before something is done that cannot be undone; where nobody can answer, --yes must."""
    if yes:
        return
    try:
        typer.confirm(question, abort=True, err=True)
    except typer.Abort:
        typer.echo("nothing was changed", err=True)
        raise typer.Exit(1) from None
