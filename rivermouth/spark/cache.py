"""Where rivermouth keeps what it fetches once: the user's cache directory."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs

from rivermouth.errors import SetupError

if sys.platform != "win32":
    import fcntl


def directory() -> Path:
    """The cache directory: `RIVERMOUTH_CACHE_DIR`, or the user's own for this platform."""
    chosen = os.environ.get("RIVERMOUTH_CACHE_DIR")
    return Path(chosen).expanduser().absolute() if chosen else platformdirs.user_cache_path("rivermouth")


def make(path: Path) -> Path:
    """Create a directory of the cache, or say how to choose another place."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SetupError(
            f"cannot create the cache directory {path}: {error.strerror or error}",
            hint="set RIVERMOUTH_CACHE_DIR to a directory you can write",
        ) from error
    return path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock between processes for as long as the block runs; it dies with the process."""
    make(path.parent)
    with path.open("a") as handle:
        # Windows has no flock; the atomic renames still keep the cache whole there.
        if sys.platform != "win32":
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def try_lock(descriptor: int) -> bool:
    """Lock an open file if nobody else has it; the lock ends when the descriptor is closed."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
