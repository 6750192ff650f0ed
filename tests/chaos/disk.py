"""A small disk of its own, mounted over a folder: it can be filled and made read-only."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.processes import wait_for

PAGE = 4096  # the disk gives away space in these


class Disk:
    """A tmpfs of a few megabytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self, leave: int = 0) -> None:
        """Take all the space there is, but for a few pages."""
        with self._ballast.open("ab", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(PAGE))
            except OSError:
                file.truncate(max(file.tell() // PAGE - leave, 0) * PAGE)

    def empty(self) -> None:
        """Give the space back."""
        self._ballast.unlink()

    def read_only(self) -> None:
        """Refuse every write; possible only while no file is open for writing."""
        wait_for(lambda: self._remount("ro"), "a moment at which nothing is being written")

    def writable(self) -> None:
        assert self._remount("rw")

    def _remount(self, how: str) -> bool:
        return (
            subprocess.run(["mount", "-o", f"remount,{how}", self.folder], capture_output=True).returncode
            == 0
        )


@contextmanager
def mounted(folder: Path, megabytes: int = 4) -> Iterator[Disk]:
    """Mount such a disk over a folder; that needs the right to."""
    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", folder]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise PermissionError(
            f"a disk cannot be mounted here ({done.stderr.strip()}): be root, or run `unshare -rm make chaos`"
        )
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
