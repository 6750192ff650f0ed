"""`rivermouth run`: run a pipeline."""

from __future__ import annotations

import enum
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rivermouth.config.model import PipelineConfig
    from rivermouth.observe.observer import Observer


class LogFormat(str, enum.Enum):
    """How log lines look."""

    text = "text"
    json = "json"


def run(
    file: Annotated[Path, typer.Argument(help="The config file, YAML or TOML.", metavar="FILE")],
    once: Annotated[
        bool, typer.Option("--once", help="Land what is there now, then exit 0; for cron.")
    ] = False,
    sink: Annotated[
        list[str] | None,
        typer.Option("--sink", metavar="NAME", help="Run this sink only; may be repeated."),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option("--for", metavar="SECONDS", min=0, help="Stop by itself after this time.")
    ] = None,
    log_format: Annotated[
        LogFormat, typer.Option("--log-format", help="How log lines look.")
    ] = LogFormat.text,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Log every epoch, Spark's own log and stack traces.")
    ] = False,
) -> None:
    """Run a pipeline until it is stopped: SIGTERM or Ctrl-C finishes the epoch in flight."""
    from rivermouth.observe import log

    log.configure(log_format.value, verbose)
    observer = start(load(file), once=once, only=sink or [], seconds=seconds, verbose=verbose)
    if any(status.phase == "failed" for status in observer.state.sinks()):
        raise typer.Exit(1)


def load(file: Path) -> PipelineConfig:
    """Load a config file with the connectors there are."""
    from rivermouth import sources
    from rivermouth.config.load import load

    return load(file, sources.models())


def start(config: PipelineConfig, **options: Any) -> Observer:
    """Run a pipeline with the live table on a terminal, and a quiet line a minute elsewhere."""
    from rich.console import Console

    from rivermouth.pipeline.run import run

    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        return run(config, watch=_watch_quietly, **options)
    with console.status("starting") as status:

        def watch(observer: Observer, address: str) -> AbstractContextManager[Any]:
            from rivermouth.observe.display import Display

            status.stop()
            return Display(observer, console, address)

        return run(config, watch=watch, progress=status.update, **options)


def _watch_quietly(observer: Observer, _address: str) -> AbstractContextManager[Any]:
    from rivermouth.observe.report import Reporter

    return Reporter(observer)
