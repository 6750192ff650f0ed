"""Crash points: the moments at which a test may end, stop or fail this process. Only tests set the variable.

    RIVERMOUTH_FAULT="after-commit=kill"            the first time
    RIVERMOUTH_FAULT="before-dead-letters=stop@3"   the third time

`kill` is SIGKILL and `stop` is SIGSTOP, both to this very process; `fail` raises an OSError, as a call whose
answer is lost would. Unset, a point costs a look at a dictionary.
"""

from __future__ import annotations

import enum
import os
import signal
import threading

VARIABLE = "RIVERMOUTH_FAULT"


class Point(str, enum.Enum):
    """Every crash point, in the order in which a start and an epoch come by."""

    BEFORE_CLAIM = "before-claim"  # what is to be claimed is decided, the commit not made
    AFTER_CLAIM = "after-claim"  # the claim is in the log
    AFTER_JOB = "after-job"  # the epoch's files are written, and nothing refers to them
    BEFORE_COMMIT = "before-commit"  # the log was looked at, the commit is about to be made
    AFTER_COMMIT = "after-commit"  # the log file is there, the answer has not come back
    BEFORE_DEAD_LETTERS = "before-dead-letters"  # the epoch is in, its dead letters are not
    AFTER_DEAD_LETTERS = "after-dead-letters"  # both are in
    DURING_LOG_CHECKPOINT = "during-log-checkpoint"  # the log checkpoint is written, the log not cleaned


class Fault(OSError):
    """The failure a test asked for."""


_counts: dict[str, int] = {}
_lock = threading.Lock()


def reach(point: Point) -> None:
    """Come by a crash point."""
    wanted = os.environ.get(VARIABLE)
    if wanted:
        _reach(point, wanted)


def _reach(point: Point, wanted: str) -> None:
    name, _, rest = wanted.partition("=")
    action, _, time = rest.partition("@")
    if Point(name) is not point:
        return
    with _lock:
        _counts[name] = _counts.get(name, 0) + 1
        due = _counts[name] == int(time or 1)
    if not due:
        return
    if action == "fail":
        raise Fault(f"{VARIABLE} asked for a failure at {name}")
    os.kill(os.getpid(), {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}[action])
