"""Reads a table's Delta log itself: which `txn` actions hold, and what the latest commits said.

delta-rs answers for one app id at a time and reads the log anew for each; a sink has one per partition.
Here the newest checkpoint is read once, by its `txn` column alone, and each later commit once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs as pafs

_COMMIT = re.compile(r"\d{20}\.json")
_CHECKPOINT = re.compile(
    r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10}))?(?:\.[0-9a-f-]{36})?\.(parquet|json)$"
)


@dataclass(frozen=True)
class Commit:
    """One commit of the log: its number, its `txn` actions and what it says of itself."""

    version: int
    txns: dict[str, int]
    info: dict[str, Any]
    changes_table: bool  # it has a metaData or protocol action

    @property
    def restores(self) -> bool:
        """Whether it set the table back to an older version."""
        return self.info.get("operation") == "RESTORE"

    @property
    def note(self) -> dict[str, Any]:
        """The JSON that rivermouth left in `userMetadata`; empty for other writers' commits."""
        return parse_note(self.info.get("userMetadata"))


def parse_note(text: Any) -> dict[str, Any]:
    """Read a `userMetadata` text of ours; anything else gives an empty dict."""
    try:
        note = json.loads(text)
    except (TypeError, ValueError):
        return {}
    return note if isinstance(note, dict) and "rivermouth" in note else {}


def parse_files(text: bytes) -> tuple[set[str], set[str]]:
    """The data files that a commit file adds and removes."""
    added, removed = set(), set()
    for line in text.splitlines():
        if line.startswith(b'{"add"'):
            added.add(_file_key(json.loads(line)["add"]))
        elif line.startswith(b'{"remove"'):
            removed.add(_file_key(json.loads(line)["remove"]))
    return added, removed


def _file_key(action: dict[str, Any]) -> str:
    """A file with other rows marked as deleted is another file."""
    vector = action.get("deletionVector")
    return str(action["path"]) + (f" {vector['pathOrInlineDv']} {vector.get('offset')}" if vector else "")


def parse_commit(version: int, text: bytes) -> Commit:
    """Read the actions of one commit file."""
    txns: dict[str, int] = {}
    info: dict[str, Any] = {}
    changes = False
    for line in text.splitlines():
        # Adds and removes are the bulk of a log and say nothing about progress.
        if not line or line.startswith((b'{"add"', b'{"remove"', b'{"cdc"')):
            continue
        action = json.loads(line)
        if "txn" in action:
            txns[action["txn"]["appId"]] = action["txn"]["version"]
        elif "commitInfo" in action:
            info = action["commitInfo"]
        elif "metaData" in action or "protocol" in action:
            changes = True
    return Commit(version, txns, info, changes)


class LogReplaced(Exception):
    """There is another log where this one was: the table was dropped and created again."""


@dataclass
class LogView:
    """The log of one table as far as it has been read."""

    filesystem: pafs.FileSystem
    folder: str  # .../_delta_log
    version: int = -1
    txns: dict[str, int] = field(default_factory=dict)
    last: Commit | None = None  # the commit of `version`, to recognise it again
    restored: Commit | None = None  # the newest RESTORE seen

    def advance(self, version: int) -> list[Commit] | None:
        """Read on up to `version`: the commits that are new, or None where they could not be had one by one.

        Raises LogReplaced when the log is no longer the one that was read before.
        """
        try:
            if self.last is None:
                raise FileNotFoundError
            if version < self.version or self.commit(self.version) != self.last:
                raise LogReplaced(self.folder)
            commits = [self.commit(v) for v in range(self.version + 1, version + 1)]
        except FileNotFoundError:  # the first time, or the log was cleaned up while we slept
            self._load(version)
            return None
        for commit in commits:
            self.txns.update(commit.txns)
            self.version, self.last = commit.version, commit
            self.restored = commit if commit.restores else self.restored
        return commits

    def commit(self, version: int) -> Commit:
        """One commit, from its own file."""
        return parse_commit(version, self.text(version))

    def files(self, version: int) -> tuple[set[str], set[str]]:
        """The data files that one commit added and removed."""
        return parse_files(self.text(version))

    def at(self, version: int) -> LogView:
        """The log as it was at an older version; FileNotFoundError if it no longer reaches back so far."""
        view = LogView(self.filesystem, self.folder)
        view._load(version)
        return view

    def same_files_before(self, version: int) -> int | None:
        """The newest version before this one whose data files were the same; None if the log has none.

        For a RESTORE this is the version that was restored, or a later one with the same rows: a claim adds
        no files. The commit itself cannot be relied on to tell: with a timestamp it holds only its text.
        """
        differing: set[str] = set()
        for later in range(version, 0, -1):
            try:
                added, removed = self.files(later)
            except FileNotFoundError:
                return None
            differing ^= added ^ removed
            if not differing:
                return later - 1
        return None

    def text(self, version: int) -> bytes:
        """The file of one commit."""
        with self.filesystem.open_input_stream(f"{self.folder}/{version:020d}.json") as stream:
            return bytes(stream.read())

    def newest(self) -> int:
        """The newest version there is; -1: there is no log."""
        return _newest(self._names())

    def _names(self) -> list[str]:
        found = self.filesystem.get_file_info(pafs.FileSelector(self.folder, allow_not_found=True))
        return [info.base_name for info in found if info.type == pafs.FileType.File]

    def backwards(self) -> Iterator[Commit]:
        """The commits from the latest to the oldest that is still there."""
        for version in range(self.version, -1, -1):
            try:
                yield self.commit(version)
            except FileNotFoundError:
                return

    def effective(self) -> Iterator[Commit]:
        """The same without those whose rows a RESTORE took away."""
        after = self.version + 1
        for made in self.backwards():
            if made.version >= after:
                continue
            yield made
            if made.restores:
                back = self.same_files_before(made.version)
                if back is None:
                    return
                after = back + 1

    def _load(self, version: int) -> None:
        names = self._names()
        previous = self.version
        if previous > _newest(names):
            raise LogReplaced(self.folder)  # clean-up leaves the newest commits
        base, parts = newest_checkpoint(names, version)
        txns: dict[str, int] = {}
        for part in parts:
            txns.update(self._checkpoint_txns(part))
        for later in range(base + 1, version + 1):
            txns.update(self.commit(later).txns)
        last = self.commit(version)
        # All at once, and only now: what fails half-way must leave the view as it was.
        self.txns, self.version, self.last = txns, version, last
        if previous >= 0:  # what came while we did not look, as far as it is still there
            for commit in takewhile(lambda made: made.version > previous, self.backwards()):
                if commit.restores:
                    self.restored = commit
                    break

    def _checkpoint_txns(self, name: str) -> dict[str, int]:
        path = f"{self.folder}/{name}"
        if name.endswith(".json"):
            with self.filesystem.open_input_stream(path) as stream:
                return parse_commit(0, stream.read()).txns
        with self.filesystem.open_input_file(path) as file:
            parquet = pq.ParquetFile(file)
            if "txn" not in parquet.schema_arrow.names:
                return {}
            column: pa.ChunkedArray = parquet.read(columns=["txn"]).column("txn")
        return {row["appId"]: row["version"] for row in column.drop_null().to_pylist() if row["appId"]}


def _newest(names: list[str]) -> int:
    return max((int(name[:20]) for name in names if _COMMIT.fullmatch(name)), default=-1)


def newest_checkpoint(names: list[str], version: int) -> tuple[int, list[str]]:
    """The newest complete checkpoint at or before `version` and its files; (-1, []) if there is none."""
    found: dict[int, dict[tuple[int, int] | None, str]] = {}
    for name in names:
        match = _CHECKPOINT.match(name)
        if match and int(match[1]) <= version:
            part = (int(match[2]), int(match[3])) if match[2] else None
            found.setdefault(int(match[1]), {})[part] = name
    for number in sorted(found, reverse=True):
        files = found[number]
        if None in files:
            return number, [files[None]]
        for total in {part[1] for part in files if part}:
            parts = [files[(i, total)] for i in range(1, total + 1) if (i, total) in files]
            if len(parts) == total:
                return number, parts
    return -1, []
