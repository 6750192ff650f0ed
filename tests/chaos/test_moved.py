"""The pipeline is moved to another machine while it runs, and back, and nobody stops the first one."""

from __future__ import annotations

import pytest

from tests.chaos.river import River
from tests.chaos.run import Run

pytestmark = pytest.mark.slow


def test_a_pipeline_moves_to_another_machine_and_back(river: River):
    """Each start has a working directory, a home and a temporary directory that no other start has seen."""
    with river.stream.flowing():
        here = started(river)
        there = taken_over(river, here)
        back = taken_over(river, there)
    back.terminate()
    river.finish()
    river.check()
    assert len({note["instance"] for note in river.log.notes("epoch")}) >= 3


def started(river: River) -> Run:
    """A machine on which the pipeline runs and makes progress."""
    before = {note["instance"] for note in river.log.notes("epoch")}
    run = river.start()
    run.until(lambda: {note["instance"] for note in river.log.notes("epoch")} - before, "an epoch of its own")
    return run


def taken_over(river: River, old: Run) -> Run:
    """Another machine, to which the pipeline moves while the old one still runs it."""
    new = started(river)
    code, said = old.end()
    assert code == 1, said
    assert f"Fenced: sink 'numbers' was taken over by {river.log.owner()}" in said
    assert f":{new.process.pid}:" in river.log.owner()
    return new
