"""One Delta table as a sink holds it: opened or created, compared, read on, checkpointed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from deltalake import DeltaTable, TableFeatures
from deltalake.exceptions import DeltaError, TableNotFoundError

from rivermouth import faults
from rivermouth.delta import features, schema
from rivermouth.delta.log import Commit, LogReplaced, LogView
from rivermouth.delta.storage import open_filesystem
from rivermouth.errors import DeltaWriterFailed, NotATable, in_a_line

DEFAULT_CHECKPOINT_INTERVAL = 100

# delta-rs takes each new commit as one more piece of its list of files, and goes over all the pieces at each
# commit: after 1,000 of them that takes 130 ms. Opened anew, the list is in one piece.
_REOPEN_AFTER = 50


@dataclass(frozen=True)
class TableSpec:
    """What a sink wants its table to be."""

    uri: str
    schema: pa.Schema
    partition_columns: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    overwrite: bool = False


class Table:
    """An open table, its log read up to `version`."""

    def __init__(self, spec: TableSpec, delta: DeltaTable) -> None:
        self.spec = spec
        self.delta = delta
        filesystem, root = open_filesystem(spec.uri)
        self.log = LogView(filesystem, f"{root}/_delta_log")
        self._opened_at = delta.version()
        self._id = str(delta.metadata().id)
        self.verify()
        self.log.advance(delta.version())

    @property
    def id(self) -> str:
        """What tells this table from one that is created in its place."""
        return self._id

    @property
    def version(self) -> int:
        return self.log.version

    @property
    def txns(self) -> dict[str, int]:
        return self.log.txns

    def refresh(self) -> list[Commit] | None:
        """Take in what was committed since: those commits, or None where only their sum is known.

        A table that was changed is compared again.
        """
        try:
            if self.delta.version() - self._opened_at >= _REOPEN_AFTER:
                self._reopen()
            else:
                self.delta.update_incremental()
            commits = self.log.advance(self.delta.version())
            if commits is None:  # delta-rs may still hold what was there before
                self._reopen()
                self.log.advance(self.delta.version())  # both of one version, or a guard looks past a commit
        except (LogReplaced, TableNotFoundError):
            raise self._replaced() from None
        except (DeltaError, OSError):
            if self.log.newest() < self.version:
                raise self._replaced() from None
            raise
        if commits is None or any(commit.changes_table for commit in commits):
            self.verify()
        return commits

    def _reopen(self) -> None:
        self.delta = DeltaTable(self.spec.uri)
        self._opened_at = self.delta.version()

    def verify(self) -> None:
        """Raise unless the table can take the sink's events as it is now."""
        metadata, protocol = self.delta.metadata(), self.delta.protocol()
        if str(metadata.id) != self._id:
            raise self._replaced()
        features.ensure_writable(
            protocol.min_writer_version,
            protocol.writer_features,
            metadata.configuration,
            self.delta.schema().to_json(),
            overwrite=self.spec.overwrite,
        )
        schema.ensure_same(
            self.spec.uri,
            self.delta.schema(),
            metadata.partition_columns,
            self.spec.schema,
            self.spec.partition_columns,
        )

    def _replaced(self) -> DeltaWriterFailed:
        what = "dropped" if self.log.newest() < 0 else "dropped and created again"
        return DeltaWriterFailed(
            f"the table {self.spec.uri} was {what} while it was in use",
            hint="start again to fill the new table from the beginning; if it took the old one's place in "
            "the same log, on_restore says what is done",
        )

    def checkpoint_due(self, previous: int) -> bool:
        """Whether the log has passed a multiple of the table's checkpoint interval since `previous`."""
        text = self.delta.metadata().configuration.get("delta.checkpointInterval", "")
        interval = int(text) if text.isdigit() and int(text) > 0 else DEFAULT_CHECKPOINT_INTERVAL
        return self.version // interval > previous // interval

    def checkpoint(self) -> None:
        """Write a log checkpoint and remove expired log files, as the table's properties say."""
        self.delta.create_checkpoint()
        faults.reach(faults.Point.DURING_LOG_CHECKPOINT)
        if self.delta.metadata().configuration.get("delta.enableExpiredLogCleanup", "true").lower() == "true":
            self.delta.cleanup_metadata()


def open_table(spec: TableSpec, *, create: bool) -> Table:
    """Open the table a sink writes to, or create it with the sink's schema."""
    delta = _try_open(spec.uri)
    if delta is None and not create:
        raise NotATable(f"there is no Delta table at {spec.uri}, and auto_create_table is false")
    if delta is None:
        delta = _create(spec)
    return Table(spec, delta)


def is_table(uri: str) -> bool:
    """Whether there is a Delta table at an address; what cannot be looked at is an error."""
    return _try_open(uri) is not None


def _try_open(uri: str) -> DeltaTable | None:
    try:
        return DeltaTable(uri)
    except TableNotFoundError:
        return None
    except (DeltaError, OSError) as error:
        # A log that cannot be understood stays so; a disk or network that fails may come back.
        told = f"the table {uri} cannot be opened: {in_a_line(error)}"
        raise DeltaWriterFailed(told, retryable=isinstance(error, OSError)) from error


def _complete_protocol(delta: DeltaTable) -> None:
    """Name the feature that a NOT NULL column needs: delta-rs forgets it, delta-spark insists on it."""
    protocol = delta.protocol()
    required = any(not column.nullable for column in delta.schema().fields)
    if protocol.min_writer_version == 7 and required and "invariants" not in (protocol.writer_features or ()):
        delta.alter.add_feature(TableFeatures.Invariants)
        delta.update_incremental()


def _create(spec: TableSpec) -> DeltaTable:
    try:
        delta = DeltaTable.create(
            spec.uri,
            schema=schema.to_delta(spec.schema),
            partition_by=list(spec.partition_columns),
            configuration=dict(spec.properties),
            mode="error",
        )
        _complete_protocol(delta)
        return delta
    except (DeltaError, OSError, ValueError) as error:
        made = _try_open(spec.uri)  # somebody else may have created it at the same moment
        if made is not None:
            return made
        raise DeltaWriterFailed(f"the table {spec.uri} cannot be created: {in_a_line(error)}") from error
