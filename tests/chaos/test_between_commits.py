"""A crash, or a call that fails, at every crash point there is: between any two steps of the protocol."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rivermouth.faults import Point
from tests.chaos.river import River

pytestmark = pytest.mark.slow

# After a kill at this point: whether the epoch is in, and whether its dead letters are.
LEFT = {
    Point.BEFORE_CLAIM: (False, False),
    Point.AFTER_CLAIM: (False, False),
    Point.AFTER_JOB: (False, False),
    Point.BEFORE_COMMIT: (False, False),
    Point.AFTER_COMMIT: (True, False),
    Point.BEFORE_DEAD_LETTERS: (True, False),
    Point.AFTER_DEAD_LETTERS: (True, True),
    Point.DURING_LOG_CHECKPOINT: (True, False),
}
# A start comes by these with its claim first.
ALSO_IN_A_CLAIM = (Point.BEFORE_COMMIT, Point.AFTER_COMMIT)


def test_every_crash_point_has_a_scenario():
    assert set(LEFT) == set(Point)


@pytest.fixture
def begun(river: River) -> River:
    """A pipeline with one epoch in its table, that would land a second one now."""
    river.sink["table_properties"] = {"delta.checkpointInterval": "1"}
    river.stream.produce(50)
    river.finish()
    river.stream.produce(50)
    assert shown(river) == (1, 1)
    return river


def shown(river: River) -> tuple[int, int]:
    return len(river.log.notes("epoch")), len(river.dead_letter_log.notes("dead_letters"))


def at(point: Point, action: str) -> str:
    return f"{point.value}={action}@{2 if point in ALSO_IN_A_CLAIM else 1}"


def test_what_a_kill_leaves_undone_the_next_start_finishes(begun: River):
    """One table, and one start after the other, each killed at the next point."""
    for point, (epoch, dead_letters) in LEFT.items():
        begun.stream.produce(50)
        epochs, _ = shown(begun)
        code, said = begun.start("--once", fault=at(point, "kill")).end()
        assert code == -9, said
        # A start finishes the dead letters of the epoch before, if they are owed.
        assert shown(begun) == (epochs + epoch, epochs + dead_letters), f"{point.value}: {said}"
    begun.finish()
    begun.check()


def test_a_call_that_fails_is_repeated_or_found_to_have_worked(begun: River, fault: Callable[[str], None]):
    """It goes on by itself. At `after-commit` the log file is there, and only the answer is lost."""
    for point in Point:
        begun.stream.produce(50)
        epochs, _ = shown(begun)
        fault(at(point, "fail"))
        begun.finish()
        assert shown(begun) == (epochs + 1, epochs + 1), point
    begun.check()


def test_a_claim_that_fails_is_repeated_or_found_to_have_worked(begun: River, fault: Callable[[str], None]):
    for generation, point in enumerate(ALSO_IN_A_CLAIM, start=2):
        fault(f"{point.value}=fail")
        begun.finish()
        assert begun.log.notes("claim")[-1]["generation"] == generation, point
    begun.check()
