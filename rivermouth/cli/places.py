"""How an operator names a place in a source: an end of it, a moment, or offsets as JSON."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rivermouth.sources.base import Place

HELP = 'earliest, latest, an ISO timestamp, or offsets as JSON: \'{"orders": {"0": 1200}}\''


def parse_place(text: str) -> Place:
    """Read a place; what it is not is told with what it may be."""
    if text == "earliest":
        return "earliest"
    if text == "latest":
        return "latest"
    try:
        if text.lstrip().startswith("{"):
            return _offsets(json.loads(text))
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
        return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    except (ValueError, TypeError, AttributeError):
        raise typer.BadParameter(f"{text!r} is no place; it may be {HELP}") from None


def _offsets(tree: Any) -> Place:
    """`{"topic": {"0": 5, "1": "latest"}}`, and nothing else."""
    found = {}
    for topic, numbers in tree.items():
        found[topic] = {int(number): at for number, at in numbers.items()}
        for at in found[topic].values():
            number = isinstance(at, int) and not isinstance(at, bool) and at >= 0
            if not number and at not in ("earliest", "latest"):
                raise ValueError(at)
    if not found:
        raise ValueError(tree)
    return found


def confirmed(question: str, yes: bool) -> None:
    """Ask before something is done that cannot be undone; where nobody can answer, --yes must."""
    if yes:
        return
    try:
        typer.confirm(question, abort=True, err=True)
    except typer.Abort:
        typer.echo("nothing was changed", err=True)
        raise typer.Exit(1) from None
