"""`rivermouth dead-letters`: which records could not become events, and why."""

from __future__ import annotations

import base64
import enum
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rivermouth.cli.output import Format, iso, number, one_line, print_facts, print_json, print_table, seconds
from rivermouth.cli.times import moment

if TYPE_CHECKING:
    from rivermouth.config.model import PipelineConfig
    from rivermouth.delta.letters import Filter, Group

_CUT = 200

app = typer.Typer(no_args_is_help=True)

File = Annotated[Path, typer.Argument(help="The config file, YAML or TOML.", metavar="FILE")]
Sinks = Annotated[
    list[str] | None, typer.Option("--sink", metavar="NAME", help="Of this sink only; may be repeated.")
]
Reasons = Annotated[
    list[str] | None, typer.Option("--reason", metavar="WORD", help="For this reason; may be repeated.")
]
Topics = Annotated[
    list[str] | None, typer.Option("--topic", metavar="NAME", help="Of this topic; may be repeated.")
]
Since = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help="Records of this time, or date, and later.")
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="Records from before this time, or date.")
]
All = Annotated[bool, typer.Option("--all", help="Also those that have been replayed.")]


class LetterFormat(str, enum.Enum):
    """For people or for programs."""

    table = "table"
    json = "json"
    ndjson = "ndjson"


@app.callback()
def dead_letters() -> None:
    """List, show and replay the records that could not become events."""


@app.command("list")
def list_(
    file: File,
    sink: Sinks = None,
    reason: Reasons = None,
    topic: Topics = None,
    since: Since = None,
    until: Until = None,
    show_all: All = False,
    output: Annotated[
        Format, typer.Option("--format", help="For people, or JSON for programs.")
    ] = Format.table,
) -> None:
    """Count dead letters by sink, reason and topic."""
    from rivermouth.cli.run import load
    from rivermouth.delta.letters import count

    config = load(file)
    wanted = chosen(config, sink, reason, topic, since, until, replayed=show_all)
    groups = count(tables(config, wanted), wanted)
    if output is Format.json:
        print_json([_group_json(group) for group in groups])
    elif not groups:
        typer.echo("there are none")
    else:
        _print_groups(groups, show_all)


@app.command()
def show(
    file: File,
    sink: Sinks = None,
    reason: Reasons = None,
    topic: Topics = None,
    since: Since = None,
    until: Until = None,
    show_all: All = False,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=10_000, help="At most this many, newest first.")
    ] = 10,
    full: Annotated[
        bool, typer.Option("--full", help=f"Do not cut keys, values and headers at {_CUT} characters.")
    ] = False,
    output: Annotated[
        LetterFormat,
        typer.Option("--format", help="For people, or whole for programs: an array, or a line each."),
    ] = LetterFormat.table,
) -> None:
    """Show dead letters whole, newest first: where each was, why it is bad, and what it holds."""
    from rivermouth.cli.run import load
    from rivermouth.delta.letters import newest

    config = load(file)
    wanted = chosen(config, sink, reason, topic, since, until, replayed=show_all)
    found = newest(tables(config, wanted), wanted, limit)
    if output is LetterFormat.json:
        print_json([_letter_json(letter) for letter in found])
    elif output is LetterFormat.ndjson:
        for letter in found:
            typer.echo(json.dumps(_letter_json(letter), ensure_ascii=False))
    elif not found:
        typer.echo("there are none")
    else:
        for letter in found:
            _print_letter(letter, None if full else _CUT)


def chosen(
    config: PipelineConfig,
    sinks: Sequence[str] | None,
    reasons: Sequence[str] | None,
    topics: Sequence[str] | None,
    since: str | None,
    until: str | None,
    *,
    replayed: bool = False,
) -> Filter:
    """The filter that the options ask for; every mistake in them is a `ConfigError`."""
    from rivermouth.delta.dead_letters import RECORDS_LOST
    from rivermouth.delta.letters import Filter
    from rivermouth.errors import ConfigError
    from rivermouth.formats.base import REASONS
    from rivermouth.pipeline.run import choose

    known = (*REASONS, RECORDS_LOST)
    unknown = [reason for reason in reasons or [] if reason not in known]
    if unknown:
        raise ConfigError(
            f"there is no reason {', '.join(map(repr, unknown))}", hint=f"the reasons are {', '.join(known)}"
        )
    return Filter(
        config.pipeline,
        tuple(choose(config, sinks or [])),
        tuple(reasons or ()),
        tuple(topics or ()),
        moment(since, "--since") if since is not None else None,
        moment(until, "--until") if until is not None else None,
        replayed,
    )


def tables(config: PipelineConfig, wanted: Filter) -> list[str]:
    """Where the dead letters of the filter's sinks are."""
    return [config.sinks[name].config.dead_letter_uri for name in wanted.sinks]


def _group_json(group: Group) -> dict[str, Any]:
    return {
        "sink": group.sink,
        "reason": group.reason,
        "topic": group.topic,
        "total": group.total,
        "replayed": group.replayed,
        "first_time": iso(group.first_time),
        "last_time": iso(group.last_time),
        "first_day": str(group.first_day),
        "last_day": str(group.last_day),
    }


def _print_groups(groups: Sequence[Group], show_all: bool) -> None:
    left = ["sink", "reason", "topic", "first record", "last record", "first met", "last met"]
    rows = []
    for group in groups:
        replayed = [f"{number(group.replayed)}/{number(group.total)}"] if show_all else [number(group.total)]
        times = [seconds(group.first_time), seconds(group.last_time)]
        days = [str(group.first_day), str(group.last_day)]
        rows.append([group.sink, group.reason, one_line(group.topic or "-"), *replayed, *times, *days])
    heads = [*left[:3], "replayed/total" if show_all else "letters", *left[3:]]
    print_table(heads, rows, left)


def _letter_json(letter: dict[str, Any]) -> dict[str, Any]:
    return {
        "sink": letter["sink"],
        "topic": letter["topic"],
        "partition": letter["partition"],
        "offset": letter["offset"],
        "timestamp": iso(letter["timestamp"]),
        "reason": letter["reason"],
        "message": letter["message"],
        **_bytes_json("key", letter["key"]),
        **_bytes_json("value", letter["value"]),
        "headers": [
            {"key": header["key"], **_bytes_json("value", header["value"])}
            for header in letter["headers"] or []
        ],
        "epoch": letter["epoch"],
        "day": str(letter["day"]),
        "replayed": iso(letter["replayed"]),
    }


def _bytes_json(name: str, value: bytes | None) -> dict[str, str | None]:
    """Bytes as text where they are text, else under a name that says what they are."""
    try:
        return {name: None if value is None else value.decode()}
    except UnicodeDecodeError:
        assert value is not None
        return {f"{name}_base64": base64.b64encode(value).decode()}


def _print_letter(letter: dict[str, Any], most: int | None) -> None:
    place = f"{letter['topic']}/{letter['partition']}, offset {letter['offset']}"
    facts = [
        ("reason", letter["reason"]),
        ("message", one_line(letter["message"])),
        ("time", iso(letter["timestamp"]) or "none"),
        ("met", f"{letter['day']}, by sink {letter['sink']} in epoch {letter['epoch']}"),
    ]
    if letter["replayed"] is not None:
        facts.append(("replayed", iso(letter["replayed"]) or ""))
    facts += [("key", _shown(letter["key"], most)), ("value", _shown(letter["value"], most))]
    for header in letter["headers"] or []:
        facts.append(("header", f"{one_line(header['key'] or '')}: {_shown(header['value'], most)}"))
    print_facts(one_line(place), facts)


def _shown(value: bytes | None, most: int | None) -> str:
    """Bytes as text on one line; what is not UTF-8 is escaped, and what is too long is cut."""
    if value is None:
        return "none"
    # A character has at most 4 bytes; what is cut off anyway need not be decoded.
    start = value if most is None else value[: 4 * most + 4]
    text = one_line(start.decode("utf-8", "backslashreplace"))
    if most is None or len(text) <= most:
        return text
    return f"{text[:most]}... ({len(value):,} bytes)"
