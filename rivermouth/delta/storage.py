"""Where a table's files live: its address, and the file system behind it."""

from __future__ import annotations

from pathlib import Path

from pyarrow import fs

from rivermouth.config.uri import local_path
from rivermouth.errors import InvalidTableUri


def parse_uri(uri: str) -> str:
    """The one spelling of a table's address, the same for deltalake, Spark and DuckDB: an absolute path."""
    path = local_path(uri)
    if path == Path(path).anchor:
        raise InvalidTableUri("the address is the root of the file system", hint="name a folder in it")
    return path


def open_filesystem(uri: str) -> tuple[fs.FileSystem, str]:
    """The file system of a table and the table's folder in it; the folder need not exist yet."""
    root = parse_uri(uri)
    if Path(root).exists() and not Path(root).is_dir():
        raise InvalidTableUri("the address is a file", hint="a table is a folder; name another one")
    return fs.LocalFileSystem(), root
