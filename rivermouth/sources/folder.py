"""Finds the files of a folder or a glob, and tells whether one has changed: plain file system, no Spark."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

_SET_ASIDE = (".", "_")
_UNFINISHED = (".tmp", ".temp", ".part", ".partial", ".crdownload", "._COPYING_", ".swp")

Unreadable = Callable[[OSError], None]


@dataclass(frozen=True)
class File:
    """A file as it was when it was looked at."""

    path: str
    size: int
    modified: float


def exists(pattern: str) -> bool:
    """Whether there is such a folder; a glob may match later."""
    return os.path.isdir(pattern) or glob.has_magic(pattern)


def paths(pattern: str, unreadable: Unreadable) -> Iterator[str]:
    """The absolute paths a folder or a glob has now, without what is hidden, set aside or unfinished."""
    found = _walk(os.path.abspath(pattern), unreadable) if os.path.isdir(pattern) else _match(pattern)
    return (path for path in found if not path.endswith(_UNFINISHED))


def look_at(path: str, unreadable: Unreadable) -> File | None:
    """The file as it is now; None if it is none, or is gone."""
    try:
        info = os.stat(path)
    except FileNotFoundError:  # it went away while we looked
        return None
    except OSError as error:
        unreadable(error)
        return None
    return File(path, info.st_size, info.st_mtime) if stat.S_ISREG(info.st_mode) else None


def readable(name: str) -> str:
    """A name that can be shown and stored: bytes that are not UTF-8 become `\\xff`."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _walk(folder: str, unreadable: Unreadable) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            found = [entry for entry in entries if not entry.name.startswith(_SET_ASIDE)]
    except FileNotFoundError:
        return
    except OSError as error:
        unreadable(error)
        return
    for entry in found:
        try:
            is_folder = entry.is_dir() and not (entry.is_symlink() and _leads_back(entry.path, folder))
        except OSError as error:
            unreadable(error)
            continue
        if is_folder:
            yield from _walk(entry.path, unreadable)
        else:
            yield entry.path


def _leads_back(link: str, folder: str) -> bool:
    """Whether a link in a folder points to that folder or one above it: following it would never end."""
    target = os.path.realpath(link)
    return os.path.commonpath([target, os.path.realpath(folder)]) == target


def _match(pattern: str) -> Iterator[str]:
    # A folder that the user named may begin with an underscore; what a wildcard finds may not.
    named = len(list(takewhile(lambda part: not glob.has_magic(part), Path(pattern).parts)))
    for path in glob.iglob(pattern, recursive=True):
        below = Path(path).parts[named:]
        if not any(part.startswith(_SET_ASIDE) and part != os.pardir for part in below):
            yield os.path.abspath(path)
