"""What a run came to, read back from its tables: figures, reasons, sample rows, what to try next."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from deltalake import DeltaTable
from pyarrow import fs
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rivermouth.config.model import PipelineConfig
from rivermouth.delta.storage import parse_uri
from rivermouth.observe.figures import short, whole
from rivermouth.observe.state import State

_SAMPLE_ROWS = 3


def print_summary(pipeline: PipelineConfig, state: State, lake: Path, config: Path) -> None:
    """Print what the demo did and what to try next."""
    console = Console(highlight=False)
    console.print(_figures(pipeline, state))
    console.print(_reasons(state))
    for name, sink in pipeline.sinks.items():
        if DeltaTable.is_deltatable(sink.config.table_uri):
            console.print(_sample(name, sink.config.table_uri))
    first = next(iter(pipeline.sinks.values())).config
    console.print("\nwhat to try next", style="bold")
    for command, what in (
        ("make demo", "again: it goes on where it stopped, nothing twice"),
        (f"{command_name()} check {config}", "what this pipeline does, in words"),
        (f"{command_name()} init", "a commented config of your own"),
        (f"ls {first.table_uri}", "plain Parquet, and the Delta log beside it"),
        (f"ls {first.dead_letter_uri}", "the bad records, whole, with reasons: a Delta table too"),
    ):
        console.print(Text(f"  {command:<36} ", style="cyan").append(what, style="default"), soft_wrap=True)


def command_name() -> str:
    """How this command is called from here: by its name alone only where the shell finds it."""
    if shutil.which("rivermouth"):
        return "rivermouth"
    return os.path.relpath(Path(sys.argv[0]).absolute())


def _figures(pipeline: PipelineConfig, state: State) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold", title_justify="left")
    table.add_column("this run")
    for head in ("records in", "rows out", "dead letters", "files", "commits", "rows/s", "rows in the table"):
        table.add_column(head, justify="right")
    for sink in state.sinks():
        # From the claim to the last commit: starting Spark is not the sink's.
        seconds = max((sink.last_commit or 0) - (sink.running_since or 0), 1e-3)
        uri = pipeline.sinks[sink.name].config.table_uri
        stored = DeltaTable(uri).count() if DeltaTable.is_deltatable(uri) else 0
        cells = [sink.read, sink.written, sink.dead_letters, sink.files, sink.commits]
        table.add_row(sink.name, *map(whole, cells), short(sink.written / seconds), whole(stored))
    return table


def _reasons(state: State) -> Text:
    totals: dict[str, int] = {}
    for sink in state.sinks():
        for reason, count in sink.dead.items():
            totals[reason] = totals.get(reason, 0) + count
    shown = [
        f"{reason} {whole(count)}" for reason, count in sorted(totals.items(), key=lambda i: -i[1]) if count
    ]
    return Text("\ndead letters by reason: " + (", ".join(shown) or "none"))


def _sample(name: str, uri: str) -> Table:
    # Arrow's own file system: deltalake's calls Python from threads that read ahead, also while Python exits.
    files = fs.SubTreeFileSystem(parse_uri(uri), fs.LocalFileSystem())
    rows = DeltaTable(uri).to_pyarrow_dataset(filesystem=files).head(_SAMPLE_ROWS)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim", title_justify="left")
    table.title = Text(f"\n{name}", style="bold")
    for column in rows.column_names:
        table.add_column(column, no_wrap=True, overflow="ellipsis")
    for row in rows.to_pylist():
        table.add_row(*(str(value) for value in row.values()))
    return table
