"""`rivermouth schema`: the JSON Schema of a config file, for editors."""

from __future__ import annotations

import json

import typer


def schema() -> None:
    """Print the JSON Schema of a config file, for editors."""
    from rivermouth import sources
    from rivermouth.config.json_schema import json_schema

    typer.echo(json.dumps(json_schema(sources.models()), indent=2))
