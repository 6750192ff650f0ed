"""Two instances of one pipeline: the last to claim goes on, the other stops and names the winner."""

from __future__ import annotations

import pytest

from rivermouth.faults import Point
from tests.chaos.river import River
from tests.processes import wait_for

pytestmark = pytest.mark.slow


def test_of_two_started_at_once_one_goes_on_and_the_other_names_it(river: River):
    with river.stream.flowing():
        runs = [river.start(), river.start()]
        loser = wait_for(lambda: next((r for r in runs if r.process.poll() is not None), None), "a loser")
        (winner,) = [run for run in runs if run is not loser]
        code, said = loser.end()
        assert code == 1, said
        assert f"Fenced: sink 'numbers' was taken over by {river.log.owner()}" in said
        assert f":{winner.process.pid}:" in river.log.owner()
        ahead = river.log.head() + 3
        winner.until(lambda: river.log.head() >= ahead, "epochs of the winner")
    winner.terminate()
    river.finish()
    river.check()


def test_those_that_sleep_while_another_takes_over_wake_up_to_stop(river: River):
    """All have planned the same range: another one has landed it when they wake, at three points."""
    river.stream.produce(150)
    sleepers = [
        river.start(fault=f"{Point.AFTER_CLAIM.value}=stop"),
        river.start(fault=f"{Point.AFTER_JOB.value}=stop"),
    ]
    for sleeper in sleepers:
        sleeper.until_stopped()
    # Asleep after a look at the log that said the sink is its own; the first commit is its claim.
    sleepers.append(river.start(fault=f"{Point.BEFORE_COMMIT.value}=stop@2"))
    sleepers[-1].until_stopped()
    assert (len(river.log.notes("claim")), river.log.read()) == (3, 0)
    river.finish()  # the winner
    winner = river.log.owner()
    for sleeper in sleepers:
        sleeper.wake()
    for sleeper in sleepers:
        code, said = sleeper.end()
        assert code == 1, said
        assert f"Fenced: sink 'numbers' was taken over by {winner}" in said
    river.stream.produce(150)
    river.finish()
    river.check()
