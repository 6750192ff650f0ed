"""Every error rivermouth raises on purpose: what, where, why and what to do.

`code` is stable: the same word stands in the message, the log line, the metric label and, for a bad
record, the dead-letter row. `retryable` decides whether a sink is restarted with back-off.
"""

from __future__ import annotations

import re
from typing import ClassVar

_TRACE = re.compile(r"\n\s*0: ")  # where a program of Rust begins to show its stack
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class RivermouthError(Exception):
    """The root of the tree; `str()` is the whole message, hint included."""

    code: ClassVar[str] = "Error"
    retryable: bool = False
    hint: ClassVar[str] = ""

    def __init__(self, message: str, *, hint: str | None = None, retryable: bool | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = self.hint if hint is None else hint
        if retryable is not None:
            self.retryable = retryable

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" + (f" ({self.remedy})" if self.remedy else "")


class ConfigError(RivermouthError):
    """The config file cannot be used; the caller prints it and exits 1."""

    code = "InvalidConfig"


class InvalidTableUri(RivermouthError):
    """A table's address is malformed or of a kind that is not supported."""

    code = "InvalidTableUri"
    hint = "use a local path or file:///absolute/path"


class NotATable(RivermouthError):
    """There is no Delta table at the address, and none may be created."""

    code = "NotATable"
    hint = "set auto_create_table: true, or create the table first"


class DeltaWriterFailed(RivermouthError):
    """The table cannot be written to as it is configured."""

    code = "DeltaWriterFailed"
    hint = "check that the table's schema matches the sink's, and that its folder can be written"


class SchemaMismatch(DeltaWriterFailed):
    """The table's columns are not the sink's columns."""

    code = "SchemaMismatch"
    hint = "change the sink's schema to the table's, or write to another table_uri"


class UnsupportedFeature(DeltaWriterFailed):
    """The table has a Delta feature that an append through rivermouth would break."""

    code = "UnsupportedFeature"
    hint = "write to a table without that feature"


class DeltaCommitFailed(RivermouthError):
    """A commit was refused or could not be confirmed; the epoch is not done, so nothing is lost."""

    code = "DeltaCommitFailed"
    retryable = True
    hint = "raise max_commit_retries if other writers are busy, or check permissions on _delta_log"


class Fenced(RivermouthError):
    """Another instance has taken over this sink; this one must stop."""

    code = "Fenced"
    hint = "only one instance of a pipeline may own a sink; stop the other one, or rename this pipeline"


class ProgressLost(RivermouthError):
    """The table's log says something about progress that cannot be continued from."""

    code = "ProgressLost"


class AccountingMismatch(RivermouthError):
    """The records read are not the rows written plus dead letters plus filtered: a bug, never ignored."""

    code = "AccountingMismatch"
    hint = "the epoch was not committed; please report this with the numbers above"


class BadRecord(RivermouthError):
    """A bad record met `on_bad_record: fail`."""

    code = "BadRecord"
    hint = "repair the record's producer, or set on_bad_record: dead_letter"


class SourceUnavailable(RivermouthError):
    """The source did not answer; it may come back."""

    code = "SourceUnavailable"
    retryable = True


class SourceInvalid(RivermouthError):
    """The source answered, and what is asked of it cannot be had."""

    code = "SourceInvalid"


class DataLoss(RivermouthError):
    """Records that the table has not read are gone from the source."""

    code = "DataLoss"
    hint = (
        "with on_data_loss: continue the loss becomes a gap row in the dead-letter table and reading goes "
        "on; `rivermouth offsets reset` places the sink by hand"
    )


class SourceChanged(RivermouthError):
    """A topic is no longer the one whose records were being read; what was read is not committed."""

    code = "SourceChanged"
    retryable = True


class TableRestored(RivermouthError):
    """The table was set back with RESTORE, so that it lacks rows that its offsets say it has."""

    code = "TableRestored"
    hint = (
        "on_restore: rewind reads again what the restore took away, on_restore: continue goes on without it, "
        "and `rivermouth offsets reset` places the sink by hand"
    )


class EngineFailed(RivermouthError):
    """The Spark job of an epoch failed; the epoch is not done, so nothing is lost."""

    code = "EngineFailed"
    retryable = True


class ReplayPending(RivermouthError):
    """A replay is unfinished, or this very one is done: what to do is the operator's decision."""

    code = "ReplayPending"


class SetupError(RivermouthError):
    """Java, the jars or Spark itself cannot be had on this machine."""

    code = "SetupError"
    hint = "run `rivermouth doctor`"


class EngineLost(RivermouthError):
    """The Spark process is gone; only a new start helps."""

    code = "EngineLost"
    hint = "start again; nothing is lost, the table has all that was committed"


def in_a_line(error: object) -> str:
    """What another program's error says, on one line and without its colours."""
    text = _TRACE.split(_COLOURS.sub("", str(error)), maxsplit=1)[0]
    lines = (line.strip(" \t\u21b3") for line in text.splitlines())
    return ": ".join(dict.fromkeys(line.rstrip(":") for line in lines if line))
