"""Checks a table with a reader that is not ours."""

from __future__ import annotations

from pathlib import Path

import duckdb


def ensure_whole(table: Path, count: int) -> None:
    """A fast job that loses rows is not fast."""
    with duckdb.connect() as reader:
        reader.execute("LOAD delta")
        rows, distinct = reader.execute(
            f"SELECT count(id), count(DISTINCT id) FROM delta_scan('{table}')"
        ).fetchall()[0]
    if not rows == distinct == count:
        raise SystemExit(f"{table.name}: {rows} rows, {distinct} of them distinct, of {count} events")
