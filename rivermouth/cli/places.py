"""How an operator names a place in a source: an end of it, a moment, or offsets as JSON."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import typer

from rivermouth.cli.times import moment
from rivermouth.errors import ConfigError, NotATable

if TYPE_CHECKING:
    from rivermouth.config.model import PipelineConfig
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
        return _offsets(json.loads(text, object_pairs_hook=_without_repeats))
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise ConfigError(
            f"{option}: {text[:200]!r} is no offsets by topic and partition",
            hint='write {"orders": {"0": 1200, "1": "latest"}}, as `rivermouth offsets show` does',
        ) from None


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key stands twice")
    return dict(pairs)


def _offsets(tree: Any) -> Place:
    found = {}
    for topic, numbers in tree.items():
        if not all(re.fullmatch("[0-9]{1,9}", number) for number in numbers):
            raise ValueError(topic)
        found[topic] = {int(number): at for number, at in numbers.items()}
        for at in found[topic].values():
            number = isinstance(at, int) and not isinstance(at, bool) and at >= 0
            if not number and at not in ("earliest", "latest"):
                raise ValueError(at)
    if not any(found.values()):
        raise ValueError(tree)
    return found


def require_table(config: PipelineConfig, sink: str) -> None:
    """Refuse a repair where there is nothing to repair, such as at a mistyped address."""
    from rivermouth.delta.storage import parse_uri
    from rivermouth.delta.table import is_table

    uri = parse_uri(config.sinks[sink].config.table_uri)
    if not is_table(uri):
        raise NotATable(f"there is no table of sink {sink!r} at {uri}", hint="start the pipeline first")


def confirm(question: str, yes: bool) -> None:
    """Ask before something is done that cannot be undone; where nobody can answer, --yes must."""
    if yes:
        return
    try:
        typer.confirm(question, abort=True, err=True)
    except typer.Abort:
        typer.echo("nothing was changed", err=True)
        raise typer.Exit(1) from None
