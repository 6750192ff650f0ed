"""`rivermouth dead-letters replay`: send dead letters through the pipeline again."""

from __future__ import annotations

import threading
from typing import Annotated

import typer

from rivermouth.cli.dead_letters import File, Reasons, Since, Sinks, Topics, Until, chosen, tables
from rivermouth.cli.places import confirm, require_table


def replay(
    file: File,
    sink: Sinks = None,
    reason: Reasons = None,
    topic: Topics = None,
    since: Since = None,
    until: Until = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show Spark's own log.")] = False,
) -> None:
    """Send dead letters through the pipeline again: those that can now be decoded land and are marked.

    The others stay as they are. The pipeline may run meanwhile. Broken off, it can be given again: nothing
    lands twice.
    """
    from rivermouth.cli.run import load
    from rivermouth.delta.dead_letters import RECORDS_LOST
    from rivermouth.delta.letters import count
    from rivermouth.observe import log
    from rivermouth.observe.figures import plural, whole
    from rivermouth.observe.observer import Observer
    from rivermouth.pipeline import replay_letters as letters
    from rivermouth.pipeline.ownership import Identity
    from rivermouth.pipeline.run import make_sink, open_session, signals
    from rivermouth.spark.engine import Engine

    log.configure("text", verbose)
    config = load(file)
    wanted = chosen(config, sink, reason, topic, since, until)
    waiting: dict[str, int] = {}
    for group in count(tables(config, wanted), wanted):
        if group.reason == RECORDS_LOST:  # it stands for records, and is none
            continue
        waiting[group.sink] = waiting.get(group.sink, 0) + group.total
    for name in wanted.sinks:
        typer.echo(f"sink {name}: {plural(waiting.get(name, 0), 'dead letter')} to try again")
    if not waiting:
        return
    for name in waiting:
        letters.ensure_possible(config.sinks[name].config, name)
        require_table(config, name)
    confirm("try them again?", yes)
    patience = config.shutdown_timeout.total_seconds()
    # A stop is taken after the sink at hand; a second one ends the process, and the next replay goes on.
    stop = threading.Event()
    with (
        signals(stop, patience),
        open_session(config, None, verbose, lambda message: None) as spark,
    ):
        for name in waiting:
            if stop.is_set():
                raise typer.Exit(1)
            observer = Observer(config.pipeline, {name: config.sinks[name].config.flush_interval})
            identity = Identity.new(config.pipeline, name)
            opened = make_sink(config, identity, Engine(spark), observer, part=letters.PART)
            try:
                result = letters.replay(opened, wanted.sql())
            finally:
                opened.source.close()
            bad = sum(result.rejected.values())
            typer.echo(f"sink {name}: {whole(result.written)} landed and marked, {whole(bad)} still bad")
