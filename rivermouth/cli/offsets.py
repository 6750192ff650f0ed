"""`rivermouth offsets`: where sinks stand in their sources."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rivermouth.cli.output import Format, one_line, print_facts, print_json
from rivermouth.cli.status import print_standings

if TYPE_CHECKING:
    from rivermouth.pipeline.status import SinkStatus
    from rivermouth.records import Partition

app = typer.Typer(no_args_is_help=True)


@app.callback()
def offsets() -> None:
    """Show and set the offsets of sinks."""


@app.command()
def show(
    file: Annotated[Path, typer.Argument(help="The config file, YAML or TOML.", metavar="FILE")],
    sink: Annotated[
        list[str] | None,
        typer.Option("--sink", metavar="NAME", help="Show this sink only; may be repeated."),
    ] = None,
    output: Annotated[
        Format, typer.Option("--format", help="For people, or JSON for programs.")
    ] = Format.table,
) -> None:
    """Show the offset of each sink in each partition, with the source's earliest, head and lag."""
    from rivermouth.cli.run import load
    from rivermouth.pipeline.run import choose
    from rivermouth.pipeline.status import look

    config = load(file)
    found = look(config, choose(config, sink or []))
    if output is Format.json:
        print_json({seen.name: _as_json(seen) for seen in found})
    else:
        for seen in found:
            error = seen.table_error or seen.source.error
            facts = [("error", one_line(error))] if error else []
            facts += [] if seen.started else [("state", "not started yet")]
            print_facts(f"sink {seen.name}", facts)
            if seen.source.standings:
                print_standings(seen.source.standings)
    if any(seen.table_error for seen in found):
        raise typer.Exit(1)


def _as_json(seen: SinkStatus) -> dict[str, Any]:
    standings = seen.source.standings
    return {
        "offsets": _by_topic({s.partition: s.offset for s in standings if s.condition != "gone"}),
        "gone": _by_topic({s.partition: s.offset for s in standings if s.condition == "gone"}),
        "earliest": _by_topic({s.partition: s.bounds.earliest for s in standings if s.bounds}),
        "heads": _by_topic({s.partition: s.bounds.head for s in standings if s.bounds}),
        "lag": _by_topic({s.partition: s.lag for s in standings}),
        "error": seen.table_error or seen.source.error,
    }


def _by_topic(numbers: dict[Partition, int | None]) -> dict[str, dict[str, int]]:
    """Numbers in the shape that offsets are given in: by topic and partition; unknown ones are left out."""
    topics: dict[str, dict[str, int]] = {}
    for partition, value in numbers.items():
        if value is not None:
            topics.setdefault(partition.topic, {})[str(partition.number)] = value
    return topics
