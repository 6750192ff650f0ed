"""Somebody drops the table and creates it again while a pipeline fills it."""

from __future__ import annotations

import os

import pytest
from deltalake import DeltaTable

from tests.chaos.river import River

pytestmark = pytest.mark.slow


def test_a_table_dropped_and_created_again_stops_the_sink_and_a_new_start_fills_it(river: River):
    with river.here() as here, river.stream.flowing():
        here.until(lambda: river.log.read() > 0, "the first epoch")
        schema = DeltaTable(str(river.table)).schema()
        aside = river.folder / "dropped"
        os.rename(river.table, aside)  # at once, as a catalog would
        DeltaTable.create(str(river.table), schema=schema, mode="ignore")
        error = here.failure()
    assert error.code == "DeltaWriterFailed"
    assert "was dropped and created again while it was in use" in error.message
    assert "start again to fill the new table" in error.message
    # Its dead letters are met again, in epochs with the same numbers; their table keeps its log.
    DeltaTable(f"{river.table}_dead_letters").delete()
    river.finish()
    river.check()
