"""kill -9 at any moment, again and again, with every local file deleted between two starts."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from rivermouth.faults import Point
from tests.chaos.river import River
from tests.chaos.run import Run
from tests.chaos.seed import KILLS

pytestmark = pytest.mark.slow

Moment = tuple[str, Callable[[], bool]]


@pytest.mark.timeout(120 + 40 * KILLS)
def test_a_stream_lands_once_however_often_the_process_is_killed(river: River, chance: Random):
    river.sink["table_properties"] = {"delta.checkpointInterval": "5"}
    with river.stream.flowing():
        for _ in range(KILLS):
            if chance.random() < 0.5:
                kill_at_a_crash_point(river, chance)
            else:
                kill_when_something_is_seen(river, chance)
    code, said = river.start("--once").end()
    assert code == 0, said
    river.check()


def kill_at_a_crash_point(river: River, chance: Random) -> None:
    """The process kills itself, between two lines of code."""
    point = chance.choice(list(Point))
    once = point in (Point.BEFORE_CLAIM, Point.AFTER_CLAIM, Point.DURING_LOG_CHECKPOINT)
    time = 1 if once else chance.randint(1, 4)
    print(f"kill at {point.value}, time {time}")
    run = river.start(fault=f"{point.value}=kill@{time}")
    code, said = run.end()
    assert code == -9, said


def kill_when_something_is_seen(river: River, chance: Random) -> None:
    """From outside, the moment something shows on the disk; what the process does then is anybody's guess."""
    run = river.start()
    what, seen = chance.choice(moments(river, run, chance.randint(1, 4)))
    print(f"kill at {what}")
    run.until(seen, what)
    run.kill()


def moments(river: River, run: Run, count: int) -> list[Moment]:
    """Things that can be seen; each `count` times after now."""
    head, dead_letters, files = river.log.head(), river.dead_letter_log.head(), data_files(river)
    return [
        ("the JVM is up", lambda: run.jvm() is not None),
        (f"{count} new commits", lambda: river.log.head() >= head + count),
        (
            f"{count} new commits of dead letters",
            lambda: river.dead_letter_log.head() >= dead_letters + count,
        ),
        (f"{count} new data files", lambda: data_files(river) >= files + count),
    ]


def data_files(river: River) -> int:
    """Data files in the table's folder, also those that no commit refers to yet."""
    return sum(1 for _ in river.table.glob("*.parquet"))
