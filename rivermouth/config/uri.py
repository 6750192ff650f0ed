"""Addresses of tables: which are understood, and where on this machine they point."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote

from rivermouth.errors import InvalidTableUri

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")


def local_path(uri: str) -> str:
    """The absolute path a table's address points to; raises `InvalidTableUri`, never quoting the address."""
    if not uri.strip():
        raise InvalidTableUri("the address is empty")
    if uri != uri.strip():
        raise InvalidTableUri("the address begins or ends with a blank", hint="remove the blank")
    if any(ord(character) < 32 for character in uri):
        raise InvalidTableUri("the address contains a control character", hint="remove it")
    scheme = _SCHEME.match(uri)
    if scheme is not None and scheme[1].lower() != "file":
        raise InvalidTableUri(f"{scheme[1].lower()}:// addresses are not supported")
    if uri.lower().startswith("file:"):
        return _file_uri_path(uri)
    if uri.startswith("~"):
        raise InvalidTableUri("~ is not expanded", hint="write ${HOME} or the whole path")
    if _ESCAPE.search(uri):
        # delta-rs would decode it, and every other reader would not: two folders for one table.
        raise InvalidTableUri("a path with a percent escape means two folders", hint="rename the folder")
    return os.path.realpath(uri)


def _file_uri_path(uri: str) -> str:
    path = uri[len("file://") :]
    if not uri[len("file:") :].startswith("//") or not path.startswith("/"):
        raise InvalidTableUri("a file address needs an absolute path", hint="use file:///absolute/path")
    if "?" in path or "#" in path:
        raise InvalidTableUri("a file address has no query or fragment", hint="write ? as %3F and # as %23")
    if _ESCAPE.search(unquote(path)):
        raise InvalidTableUri("a path with a percent escape means two folders", hint="rename the folder")
    return os.path.realpath(unquote(path))


def is_inside(inner: str, outer: str) -> bool:
    """Whether a path lies in a folder where that folder's table would vacuum it away."""
    first = Path(os.path.relpath(inner, outer)).parts[0] if inner != outer else os.curdir
    # Vacuum leaves folders that begin with an underscore alone.
    return first not in (os.pardir, os.curdir) and not first.startswith("_")
