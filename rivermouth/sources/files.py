"""A source of files: NDJSON or text lines, also gzipped, in a folder that grows.

Which files an offset stands for is written down before they are read, in numbered manifests beside the
table's data: manifest n lists the files of offset n, for ever. So a range can be read again and is the same.
"""

from __future__ import annotations

import glob
import json
import os
import time
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from rivermouth.config.model import Model
from rivermouth.config.values import Duration
from rivermouth.errors import SourceInvalid
from rivermouth.records import RECORD_DDL, Bounds, Offsets, Partition
from rivermouth.sources.base import Scope, Source
from rivermouth.sources.lines import SPLIT_DDL, read_lines, splits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Offsets count manifests, not records: how many records a file holds is guessed, to decide when to flush.
_RECORD_BYTES = 200
_UNFINISHED = (".tmp", ".temp", ".part", ".partial", ".crdownload", "._COPYING_", ".swp")
_ALL = Partition("files", 0)


class FilesConfig(Model):
    """Lines of the files in a folder or of a glob."""

    path: str = Field(
        min_length=1, description="A folder, read with its sub-folders, or a glob such as `in/*/*.ndjson.gz`."
    )
    topic: str | None = Field(
        default=None,
        min_length=1,
        description="A fixed topic; left out: the name of the folder a file is in.",
    )
    starting_offsets: Literal["earliest", "latest"] = Field(
        default="earliest", description="`latest` leaves the files that are there at the first start."
    )
    rest_interval: Duration = Field(
        default=timedelta(seconds=2), description="A file is taken when it has not changed for this long."
    )


@dataclass(frozen=True)
class File:
    """A file as it was when it was taken."""

    path: str
    size: int
    modified: float


@dataclass
class Manifests:
    """The numbered lists of files, beside the table's data; each is written once and never changed."""

    folder: Path
    lists: list[list[File]] = field(default_factory=list)

    def load(self) -> None:
        """Read the manifests that this process has not seen yet."""
        while (place := self._place(len(self.lists))).exists():
            self.lists.append([File(**entry) for entry in json.loads(place.read_text())["files"]])

    def add(self, files: list[File]) -> bool:
        """Write the next manifest; False if another instance wrote it first."""
        self.folder.mkdir(parents=True, exist_ok=True)
        place = self._place(len(self.lists))
        staged = place.with_name(f".{place.name}.{os.getpid()}.{time.monotonic_ns()}")
        with staged.open("w") as out:
            json.dump({"files": [vars(f) for f in files]}, out)
            out.flush()
            os.fsync(out.fileno())
        try:
            os.link(staged, place)  # fails if it is there: two instances cannot both write number n
        except FileExistsError:
            return False
        finally:
            staged.unlink()
        self.lists.append(files)
        return True

    def _place(self, number: int) -> Path:
        return self.folder / f"{number:020d}.json"


class Files(Source):
    """Lines of files."""

    connector: ClassVar[str] = "files"
    config_model: ClassVar[type[Model]] = FilesConfig

    def __init__(self, config: FilesConfig, scope: Scope, spark: SparkSession) -> None:
        super().__init__(config, scope, spark)
        from rivermouth.delta.storage import parse_uri

        root = Path(parse_uri(scope.table_uri))
        self.manifests = Manifests(root / "_rivermouth" / scope.pipeline / scope.sink / "files")
        self._taken: dict[str, File] = {}
        self._counted = 0
        self._pending: list[list[File]] = []
        self._watched: dict[str, tuple[File, float]] = {}
        self._warned: set[str] = set()

    def resolve(self, known: Offsets) -> Offsets:
        if not os.path.isdir(self.config.path) and not glob.has_magic(self.config.path):
            raise SourceInvalid(
                f"there is no folder {self.config.path!r}",
                hint="create it, or give a glob such as 'in/*.ndjson'",
            )
        self.manifests.load()
        if _ALL in known:
            return {_ALL: known[_ALL]}
        if self.config.starting_offsets == "latest":
            # The first manifest lists what is there already, and reading begins after it.
            if not self.manifests.lists and not self.manifests.add(self._list()):
                self.manifests.load()
            return {_ALL: 1}
        return {_ALL: 0}

    def bounds(self, position: Offsets) -> dict[Partition, Bounds]:
        self._look()
        return {_ALL: Bounds(0, max(len(self.manifests.lists) + len(self._pending), position.get(_ALL, 0)))}

    def waiting(self, start: Offsets, end: Offsets) -> int:
        lists = [*self.manifests.lists, *self._pending][start[_ALL] : end[_ALL]]
        return sum(max(1, file.size // _RECORD_BYTES) for files in lists for file in files)

    def most(self, max_batch_size: int) -> int:
        return 1  # a manifest is about as large as an epoch may be

    def read(self, start: Offsets, end: Offsets) -> DataFrame:
        while len(self.manifests.lists) < end[_ALL]:
            if not self.manifests.add(self._pending[0]):
                self.manifests.load()
            self._look()
        files = [f for files in self.manifests.lists[start[_ALL] : end[_ALL]] for f in files]
        parts = [
            (f.path, self._topic(f.path), f.modified, f.size, begin, stop)
            for f in files
            for begin, stop in splits(f.path, f.size)
        ]
        tasks = max(1, min(len(parts), 4 * self.spark.sparkContext.defaultParallelism))
        frame = self.spark.createDataFrame(parts, SPLIT_DDL).repartition(tasks)
        return frame.mapInArrow(read_lines, RECORD_DDL)

    def _look(self) -> None:
        """List the folder, and sort what rests and is in no manifest into lists of an epoch's size."""
        self.manifests.load()
        for files in self.manifests.lists[self._counted :]:
            self._taken.update({f.path: f for f in files})
        self._counted = len(self.manifests.lists)
        now = time.monotonic()
        resting, watched = [], {}
        for file in self._list():
            if file.path in self._taken:
                self._check(file)
            elif self._rests(file, now):
                resting.append(file)
            else:
                same = self._watched.get(file.path)
                watched[file.path] = same if same and same[0] == file else (file, now)
        self._watched = watched
        self._pending = _pack(resting, self.scope.max_batch_size * _RECORD_BYTES)

    def _rests(self, file: File, now: float) -> bool:
        """By its own time, or, for clocks that disagree, by not having changed while we watched."""
        rest = self.config.rest_interval.total_seconds()
        watched = self._watched.get(file.path)
        return time.time() - file.modified >= rest or bool(
            watched and watched[0] == file and now - watched[1] >= rest
        )

    def _check(self, file: File) -> None:
        if file != self._taken[file.path] and file.path not in self._warned:
            self._warned.add(file.path)
            self.scope.warn(
                "FileChanged", f"{file.path} changed after it was taken; what was added to it is not read"
            )

    def _list(self) -> list[File]:
        pattern = self.config.path
        if os.path.isdir(pattern):
            pattern = os.path.join(glob.escape(pattern), "**", "*")
        found = []
        for path in sorted(glob.glob(pattern, recursive=True)):
            name = os.path.basename(path)
            if name.startswith((".", "_")) or name.endswith(_UNFINISHED):
                continue
            if not self.scope.takes(self._topic(path)):
                continue
            try:
                info = os.stat(path)
            except FileNotFoundError:  # it went away while we looked
                continue
            if os.path.isfile(path):
                found.append(File(os.path.abspath(path), info.st_size, info.st_mtime))
        return found

    def _topic(self, path: str) -> str:
        return str(self.config.topic or Path(path).absolute().parent.name)


def _pack(files: list[File], limit: int) -> list[list[File]]:
    """Lists of files of about `limit` bytes, oldest first, at least one file each."""
    packs: list[list[File]] = []
    filled = 0
    for file in sorted(files, key=lambda f: (f.modified, f.path)):
        if not packs or filled + file.size > limit:
            packs.append([])
            filled = 0
        packs[-1].append(file)
        filled += file.size
    return packs
