"""`rivermouth replay`: read a range of a source again into a table."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rivermouth.cli import places
from rivermouth.cli.places import confirm, parse_place, require_table
from rivermouth.errors import ConfigError

if TYPE_CHECKING:
    from rivermouth.config.model import PipelineConfig
    from rivermouth.pipeline.replay import Range
    from rivermouth.pipeline.sink import Sink
    from rivermouth.spark.engine import Engine


def replay(
    file: Annotated[Path, typer.Argument(help="The config file, YAML or TOML.", metavar="FILE")],
    sink: Annotated[str, typer.Option("--sink", metavar="NAME", help="The sink whose table is repaired.")],
    start: Annotated[
        str | None, typer.Option("--from", metavar="PLACE", help=f"Where to begin: {places.HELP}.")
    ] = None,
    end: Annotated[
        str | None,
        typer.Option("--to", metavar="PLACE", help="Where to end; left out: as far as the sink has read."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Instead of a range: go on with the one that was broken off.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Also if the last replay was of this very range.")
    ] = False,
    abandon: Annotated[
        bool, typer.Option("--abandon", help="Give up a replay of another range that is unfinished.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log every epoch.")] = False,
) -> None:
    """Read a range of the source again into the table, after bad rows were deleted from it.

    It says first what it will do and what would be doubled. Broken off, it goes on with --resume, or when it
    is given again with the same range. The pipeline may run meanwhile.
    """
    from rivermouth.cli.run import load
    from rivermouth.observe import log
    from rivermouth.pipeline.run import choose
    from rivermouth.spark.engine import JvmOnly

    log.configure("text", verbose)
    if (start is None) != resume or (resume and (end is not None or again or abandon)):
        raise ConfigError("which range?", hint="give --from and perhaps --to, or --resume alone")
    first = parse_place(start, "--from") if start is not None else None
    last = parse_place(end, "--to") if end is not None else None
    config = load(file)
    choose(config, [sink])
    require_table(config, sink)
    with JvmOnly() as engine:
        from rivermouth.pipeline import replay as replays

        seen = _open(config, sink, engine)
        try:
            wanted = replays.find_range(seen, first, last) if first is not None else replays.unfinished(seen)
            if not wanted.end:
                typer.echo(f"sink {sink}: there is nothing in this range that the sink has read")
                return
            _explain(seen, wanted)
            replays.admit(seen, wanted, again=again, abandon=abandon)
        finally:
            seen.source.close()
    confirm("read it again?", yes)
    if not _run(config, sink, wanted, again, abandon, verbose):
        typer.echo("stopped before the end; --resume goes on from here", err=True)
        raise typer.Exit(1)


def _open(config: PipelineConfig, name: str, engine: Engine) -> Sink:
    from rivermouth.observe.observer import Observer
    from rivermouth.pipeline.ownership import Identity
    from rivermouth.pipeline.replay import PART
    from rivermouth.pipeline.run import make_sink

    observer = Observer(config.pipeline, {name: config.sinks[name].config.flush_interval})
    return make_sink(config, Identity.new(config.pipeline, name), engine, observer, part=PART)


def _explain(sink: Sink, wanted: Range) -> None:
    from rivermouth.delta.history import overlap
    from rivermouth.delta.progress import AppIds
    from rivermouth.observe.figures import plural
    from rivermouth.pipeline.replay import earlier

    typer.echo(f"sink {sink.name}, table {sink.table_uri}")
    waiting = sink.source.waiting(wanted.start, wanted.end)
    typer.echo(f"  reads again  {wanted} (about {plural(waiting, 'record')})")
    last = earlier(sink)
    if last is not None and not last.finished:
        typer.echo(f"  unfinished   a replay of {last.range}, which has come to {last.reached}")
        if last.range == wanted:
            typer.echo("  goes on      from there; what it has landed is not read again")
            return
    main = AppIds(sink.ids.pipeline, sink.ids.sink)
    typer.echo(f"  in the log   {overlap(sink.table, [main, sink.ids], wanted.start, wanted.end)}")
    typer.echo("  bad records  of the range are set aside once more")


def _run(config: PipelineConfig, name: str, wanted: Range, again: bool, abandon: bool, verbose: bool) -> bool:
    from rivermouth.observe.figures import whole
    from rivermouth.pipeline import replay as replays
    from rivermouth.pipeline.run import open_session, signals
    from rivermouth.records import Offsets
    from rivermouth.spark.engine import Engine

    stop = threading.Event()
    patience = config.shutdown_timeout.total_seconds()
    with signals(stop, patience), open_session(config, None, verbose, lambda message: None) as spark:
        sink = _open(config, name, Engine(spark))
        total = sink.source.waiting(wanted.start, wanted.end)

        def told(position: Offsets) -> None:
            left = sink.source.waiting(position, wanted.end)
            typer.echo(f"  {whole(total - left)} of {whole(total)} records", err=True)

        try:
            replays.begin(sink, wanted, again=again, abandon=abandon)
            complete = replays.run(sink, wanted, stop.is_set, told)
        finally:
            sink.source.close()
        (status,) = sink.observer.state.sinks()
        typer.echo(
            f"sink {name}: {whole(status.written)} rows and {whole(status.dead_letters)} dead letters landed"
        )
    return complete
