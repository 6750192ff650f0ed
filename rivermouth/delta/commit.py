"""Commits to a Delta table so that an epoch lands exactly once, or says that it did not.

An exception from a commit is only a question: the response may be lost, or the commit may have landed
and something after it failed. So after every attempt the log is read on, and the log answers.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deltalake import CommitProperties, PostCommitHookProperties, Transaction
from deltalake.transaction import AddAction

from rivermouth import __version__, faults
from rivermouth.delta.files import FileSpec
from rivermouth.delta.table import Table
from rivermouth.errors import DeltaCommitFailed, RivermouthError, in_a_line

_HINTS = {
    "No space left": "make room on the disk; the sink goes on by itself",
    "Read-only file system": "make the file system writable; the sink goes on by itself",
    "Permission denied": "let this user write to the table's folder; the sink goes on by itself",
}

FIRST_DELAY, LONGEST_DELAY = 0.1, 10.0

# Log checkpoints are written apart from the commit (`Table.checkpoint`), so that a failing one cannot
# make a commit look failed.
_NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


@dataclass(frozen=True)
class Change:
    """What one transaction does: files, `txn` actions and a note for people and for repair."""

    txns: Mapping[str, int]
    note: Mapping[str, Any]
    files: Sequence[FileSpec] = ()
    overwrite: bool = False
    mine_alone: bool = True  # nobody else would write these txns with these numbers
    nonce: str = field(default_factory=lambda: uuid.uuid4().hex)


@dataclass(frozen=True)
class Landed:
    """A commit that is in the log."""

    version: int
    retries: int


def delays(retries: int) -> list[float]:
    """How long to wait before each retry: 100 ms, doubling, at most 10 s."""
    return [min(FIRST_DELAY * 2**attempt, LONGEST_DELAY) for attempt in range(retries)]


def commit(
    table: Table,
    change: Change,
    *,
    retries: int,
    guard: Callable[[], None],
    on_retry: Callable[[int, str], None] = lambda attempt, reason: None,
    sleep: Callable[[float], object] = time.sleep,
) -> Landed:
    """Commit `change` on the table's present state, once, however often it takes.

    `guard` runs before each attempt and raises when the table no longer permits the change: another
    owner has claimed the sink, say. The files of `change` are written already and stay as they are.
    """
    failure: Exception | None = None
    for attempt, delay in enumerate([0.0, *delays(retries)]):
        if attempt:
            on_retry(attempt, in_a_line(failure))
            sleep(delay)
        try:
            landed = _landed(table, change)  # also the first time: others' commits are no conflict then
            if landed is None:
                guard()
                faults.reach(faults.Point.BEFORE_COMMIT)
                _transact(table, change)
                faults.reach(faults.Point.AFTER_COMMIT)
                landed = _landed(table, change)
            if landed is not None:
                return Landed(landed, attempt)
            failure = DeltaCommitFailed("the commit was answered but is not in the log")
        except RivermouthError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the log answers
            failure = error
    if (landed := _last_look(table, change)) is not None:
        return Landed(landed, retries)
    guard()
    why = in_a_line(failure)
    raise DeltaCommitFailed(
        f"{table.spec.uri}: the commit failed {retries + 1} times; the last time: {why}",
        hint=next((hint for words, hint in _HINTS.items() if words in why), None),
    ) from failure


def _last_look(table: Table, change: Change) -> int | None:
    try:
        return _landed(table, change)
    except RivermouthError:
        raise
    except Exception:  # noqa: BLE001 - not readable either: the commit's failure is the one to report
        return None


def _landed(table: Table, change: Change) -> int | None:
    """Read the log on; the version of our commit if it is there."""
    commits = table.refresh()
    if commits is None:  # log clean-up while we slept: only the txns are left to tell
        return table.version if change.mine_alone and _shows(table, change) else None
    return next((made.version for made in commits if made.note.get("nonce") == change.nonce), None)


def _shows(table: Table, change: Change) -> bool:
    return all(table.txns.get(app_id) == version for app_id, version in change.txns.items())


def _transact(table: Table, change: Change) -> None:
    now = int(time.time() * 1000)
    note = {"rivermouth": __version__, "nonce": change.nonce, **change.note}
    table.delta.create_write_transaction(
        [
            AddAction(file.path, file.size, file.partition_values, now, True, file.stats)
            for file in change.files
        ],
        mode="overwrite" if change.overwrite else "append",
        schema=table.delta.schema(),
        partition_by=list(table.spec.partition_columns),
        commit_properties=CommitProperties(
            custom_metadata={"userMetadata": json.dumps(note, separators=(",", ":"))},
            # delta-rs would rebase an overwrite over rows it never saw; we retry on fresh state instead.
            max_commit_retries=0,
            app_transactions=[Transaction(app, version, now) for app, version in change.txns.items()],
        ),
        post_commithook_properties=_NO_HOOKS,
    )
