"""A table's log as anybody can read it: JSON files in a folder, and what rivermouth noted in them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Log:
    """The log of one table; it may grow, be cleaned up, or not be there yet."""

    def __init__(self, table: Path) -> None:
        self.folder = table / "_delta_log"

    def versions(self) -> list[int]:
        """The commits that are still there one by one."""
        return sorted(int(path.stem) for path in self.folder.glob("*.json") if path.stem.isdigit())

    def head(self) -> int:
        """The latest version; -1 before the first."""
        return max(self.versions(), default=-1)

    def actions(self, version: int) -> list[dict[str, Any]]:
        text = (self.folder / f"{version:020d}.json").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]

    def notes(self, kind: str | None = None) -> list[dict[str, Any]]:
        """What rivermouth noted in its commits, in order: claims, epochs and others."""
        found = [note for version in self.versions() for note in self._notes(version)]
        return [note for note in found if kind in (None, note["kind"])]

    def owner(self) -> str:
        """The instance that claimed the sink last."""
        return str(self.notes("claim")[-1]["instance"])

    def read(self) -> int:
        """How many records the epochs in the log have read."""
        return sum(note["counts"]["read"] for note in self.notes("epoch"))

    def _notes(self, version: int) -> Iterator[dict[str, Any]]:
        for action in self.actions(version):
            text = action.get("commitInfo", {}).get("userMetadata")
            if text and '"rivermouth"' in text:
                yield json.loads(text)
