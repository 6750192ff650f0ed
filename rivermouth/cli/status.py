"""`rivermouth status`: each sink as its table and its source tell of it."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rivermouth.cli.output import Format, iso, number, one_line, print_facts, print_json, print_table, seconds
from rivermouth.observe.figures import age, plural, reasons, whole

if TYPE_CHECKING:
    from rivermouth.delta.log import Commit
    from rivermouth.pipeline.status import SinkStatus, Standing, TableSide

MOST_PARTITIONS = 20


def status(
    file: Annotated[Path, typer.Argument(help="The config file, YAML or TOML.", metavar="FILE")],
    sink: Annotated[
        list[str] | None,
        typer.Option("--sink", metavar="NAME", help="Show this sink only; may be repeated."),
    ] = None,
    show_all: Annotated[
        bool,
        typer.Option("--all", help=f"Show every partition, not only the {MOST_PARTITIONS} with most lag."),
    ] = False,
    output: Annotated[
        Format, typer.Option("--format", help="For people, or JSON for programs.")
    ] = Format.table,
) -> None:
    """Show owner, epoch, offsets, lag and last commit of each sink, without disturbing it."""
    from rivermouth.cli.run import load
    from rivermouth.pipeline.run import choose
    from rivermouth.pipeline.status import look

    config = load(file)
    found = look(config, choose(config, sink or []))
    now = datetime.now(timezone.utc)
    if output is Format.json:
        sinks = {seen.name: _as_json(seen) for seen in found}
        print_json({"pipeline": config.pipeline, "time": iso(now), "sinks": sinks})
    else:
        for seen in found:
            _print(seen, now, None if show_all else MOST_PARTITIONS)
    if any(seen.table_error for seen in found):
        raise typer.Exit(1)


def _as_json(seen: SinkStatus) -> dict[str, Any]:
    table = seen.table if seen.started else None
    progress = table.progress if table else None
    return {
        "table": seen.table_uri,
        "version": seen.table.version if seen.table else None,
        "started": seen.started,
        "error": seen.table_error,
        "owner": table.owner if table else None,
        "generation": progress.generation if progress else None,
        "epoch": progress.epoch if progress else None,
        "last_commit": _commit_json(table.last if table else None),
        "last_epoch": _commit_json(table.last_epoch if table else None),
        "restored": table.restored if table else None,
        "dead_letters": {
            "table": seen.dead_letter_uri,
            "rows": seen.table.dead_letters if seen.table else None,
            "owed": table.owed if table else False,
        },
        "source": {
            "name": seen.source_name,
            "error": seen.source.error,
            "warnings": seen.source.warnings,
        },
        "lag": seen.lag,
        "partitions": [
            {
                "topic": s.partition.topic,
                "partition": s.partition.number,
                "offset": s.offset,
                "earliest": s.bounds.earliest if s.bounds else None,
                "head": s.bounds.head if s.bounds else None,
                "lag": s.lag,
                "condition": s.condition or None,
            }
            for s in seen.source.standings
        ],
    }


def _commit_json(made: Commit | None) -> dict[str, Any] | None:
    if made is None:
        return None
    from rivermouth.pipeline.status import made_at

    told: dict[str, Any] = {
        name: made.note[name] for name in ("epoch", "counts", "lost") if name in made.note
    }
    return {"version": made.version, "time": iso(made_at(made)), "kind": made.note.get("kind"), **told}


def _print(seen: SinkStatus, now: datetime, most: int | None) -> None:
    table = seen.table
    facts = [("table", seen.table_uri + (f", version {table.version}" if table else ""))]
    if seen.table_error:
        facts.append(("error", one_line(seen.table_error)))
    elif table is None or not seen.started:
        facts.append(("state", "not started yet" + ("" if table else ": there is no table")))
    else:
        facts += _table_facts(table, now)
    if table and table.dead_letters is not None:
        owed = "; those of the last epoch are not in yet" if table.owed else ""
        rows = plural(table.dead_letters, "row")
        facts.append(("dead letters", f"{rows} in {seen.dead_letter_uri}{owed}"))
    elif table and table.owed:
        facts.append(
            ("dead letters", "those of the last epoch are not in yet, and there is no table of them")
        )
    facts.append(("source", seen.source_name))
    if seen.source.error:
        facts.append(("error", one_line(seen.source.error)))
    facts += [("warning", one_line(text)) for text in seen.source.warnings]
    standings = seen.source.standings
    if seen.source.error is None:
        unknown = [s for s in standings if s.lag is None]
        but = f", without {plural(len(unknown), 'partition')}" if unknown and seen.lag is not None else ""
        facts.append(("lag", number(seen.lag) + but))
    shown = standings
    if most is not None and len(standings) > most:
        shown = sorted(standings, key=lambda s: -1 if s.lag is None else s.lag, reverse=True)[:most]
        facts.append(
            ("partitions", f"{whole(len(standings))}; the {most} with most lag are below, --all shows all")
        )
    print_facts(f"sink {seen.name}", facts)
    if shown:
        print_standings(shown)


def _table_facts(table: TableSide, now: datetime) -> list[tuple[str, str]]:
    facts = [
        ("owner", f"{table.owner or 'no longer in the log'}, generation {table.progress.generation}"),
        ("epoch", str(table.progress.epoch)),
    ]
    if table.last is not None:
        facts.append(("last commit", _told(table.last, now)))
    if table.last_epoch is not None:
        if table.last_epoch is not table.last:
            facts.append(("last epoch", _told(table.last_epoch, now)))
        facts += _counts(table.last_epoch)
    if table.restored is not None:
        facts.append(
            ("restored", f"by version {table.restored}, with RESTORE; the next start does as on_restore says")
        )
    return facts


def _told(made: Commit, now: datetime) -> str:
    from rivermouth.pipeline.status import made_at

    at = made_at(made)
    when = f", {seconds(at)}, {age(max((now - at).total_seconds(), 0.0))} ago" if at else ""
    return f"version {made.version} ({made.note.get('kind', 'unknown')}){when}"


def _counts(made: Commit) -> list[tuple[str, str]]:
    counts = made.note.get("counts")
    if counts is None:
        return [("lost", one_line(text)) for text in made.note.get("lost", [])]
    rejected = counts["rejected"]
    parts = [
        f"read {whole(counts['read'])}",
        f"written {whole(counts['written'])}",
        f"rejected {whole(sum(rejected.values()))}{reasons(rejected)}",
        f"filtered {whole(counts['filtered'])}",
    ]
    return [("counts", ", ".join(parts))]


def print_standings(standings: list[Standing]) -> None:
    """Print where a sink stands in each of these partitions."""
    rows = [
        [
            one_line(str(s.partition)),
            number(s.offset),
            number(s.bounds.earliest if s.bounds else None),
            number(s.bounds.head if s.bounds else None),
            number(s.lag),
            s.condition,
        ]
        for s in standings
    ]
    print_table(["partition", "offset", "earliest", "head", "lag", ""], rows, left=["partition", ""])
