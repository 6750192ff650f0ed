"""A directory for the files of one session, removed at its end or, after a crash, by the next start."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from rivermouth.spark import cache

_PREFIX = "rivermouth-session-"
_LOCK = "lock"


class Scratch:
    """A private temporary directory that is locked for as long as its session lives."""

    def __init__(self) -> None:
        """Make the directory, after removing those whose session is gone."""
        _sweep(Path(tempfile.gettempdir()))
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock = os.open(self.path / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        cache.try_lock(self._lock)

    def remove(self) -> None:
        """Delete everything in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.close(self._lock)


def _sweep(parent: Path) -> None:
    for path in parent.glob(_PREFIX + "*"):
        # A directory without a lock file is just being made; one of another user cannot be opened.
        try:
            descriptor = os.open(path / _LOCK, os.O_RDWR)
        except OSError:
            continue
        if cache.try_lock(descriptor):
            shutil.rmtree(path, ignore_errors=True)
        os.close(descriptor)
