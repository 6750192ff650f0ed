"""The demo's summary reads tables, and the process ends well after it."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
from deltalake import write_deltalake

SAMPLE = """
import sys
from rich.console import Console
from rivermouth.cli.summary import _sample
Console().print(_sample("numbers", sys.argv[1]))
"""


def test_looking_at_a_few_rows_of_a_large_table_does_not_harm_the_exit(tmp_path):
    """A reader that still reads ahead while Python exits hung or crashed nearly every time."""
    rows = pa.table({"n": range(200_000), "text": [f"row {n}" for n in range(200_000)]})
    for _ in range(6):
        write_deltalake(tmp_path / "table", rows, mode="append")
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", SAMPLE, str(tmp_path / "table")],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        assert "row 0" in done.stdout
