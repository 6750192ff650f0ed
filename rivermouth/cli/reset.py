"""`rivermouth offsets reset`: set where a sink reads on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rivermouth.cli import places
from rivermouth.cli.places import confirm, parse_place, require_table

_SHOWN = 20


def reset(
    file: Annotated[Path, typer.Argument(help="The config file, YAML or TOML.", metavar="FILE")],
    to: Annotated[str, typer.Option("--to", metavar="PLACE", help=f"Where to read on: {places.HELP}.")],
    sink: Annotated[
        str | None, typer.Option("--sink", metavar="NAME", help="The sink; may be left out if there is one.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Set where a sink reads on: a commit that takes the sink over.

    The next start obeys it, and an instance that runs stops instead of undoing it. Rows that are in the table
    stay there: what is read again is doubled, and what is skipped is missing.
    """
    from rivermouth.cli.run import load
    from rivermouth.errors import ConfigError
    from rivermouth.observe.observer import Observer
    from rivermouth.pipeline import reset as resets
    from rivermouth.pipeline.ownership import Identity
    from rivermouth.pipeline.run import choose, make_sink
    from rivermouth.spark.engine import JvmOnly

    place = parse_place(to, "--to")
    config = load(file)
    chosen = list(choose(config, [sink] if sink is not None else []))
    if len(chosen) > 1:
        raise ConfigError("which sink?", hint=f"give --sink, one of {', '.join(chosen)}")
    (name,) = chosen
    require_table(config, name)
    observer = Observer(config.pipeline, {name: config.sinks[name].config.flush_interval})
    with JvmOnly() as engine:
        opened = make_sink(config, Identity.new(config.pipeline, name), engine, observer)
        try:
            moves = resets.moves(opened, place)
            typer.echo(f"sink {name}, table {opened.table_uri}")
            for move in moves[:_SHOWN]:
                typer.echo(f"  {move}")
            if len(moves) > _SHOWN:
                typer.echo(f"  and {len(moves) - _SHOWN} more partitions")
            if owner := opened.hold.owner():
                typer.echo(f"  the last owner, {owner}, stops at its next commit if it still runs")
            confirm("set these offsets?", yes)
            resets.reset(opened, moves)
            typer.echo(f"done, generation {opened.generation}: the next start goes on from here")
        finally:
            opened.source.close()
