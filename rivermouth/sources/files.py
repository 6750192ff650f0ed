"""A source of files: NDJSON or text lines, also gzipped, in a folder that grows.

Which files an offset stands for is written down before they are read, in numbered manifests beside the
table's data: manifest n lists the files of offset n, for ever. So a range can be read again and is the same.
"""

from __future__ import annotations

import json
import math
import os
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from rivermouth.config.model import Model
from rivermouth.config.uri import local_path
from rivermouth.config.values import Duration
from rivermouth.errors import ProgressLost, SourceInvalid, SourceUnavailable
from rivermouth.records import RECORD_DDL, Bounds, Offsets, Partition
from rivermouth.sources import folder
from rivermouth.sources.base import Place, Scope, Source, located
from rivermouth.sources.folder import File
from rivermouth.sources.lines import SPLIT_DDL, read_lines, splits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from rivermouth.spark.engine import Engine

# Offsets count manifests, not records: how many records a file holds is guessed, to decide when to flush.
_RECORD_BYTES = 200
# Looking at a large tree takes long: it is done so seldom that it takes a tenth of the time at most.
_LOOK_SECONDS, _LOOK_SHARE = 1.0, 10
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

    def __init__(self, config: FilesConfig, scope: Scope, engine: Engine) -> None:
        super().__init__(config, scope, engine)
        root = Path(local_path(scope.table_uri))
        self.manifests = Manifests(root / "_rivermouth" / scope.pipeline / scope.sink / "files")
        self._taken: dict[str, File] = {}
        self._counted = 0
        self._pending: list[list[File]] = []
        self._watched: dict[str, tuple[File, float]] = {}
        self._warned: set[str] = set()
        self._next_look = -math.inf

    def resolve(self, known: Offsets) -> Offsets:
        if not folder.exists(self.config.path):
            raise SourceInvalid(
                f"there is no folder {self.config.path!r}",
                hint="create it, or give a glob such as 'in/*.ndjson'",
            )
        self._next_look = -math.inf
        self.manifests.load()
        if _ALL in known:
            self._ensure_manifests(known[_ALL])
            return {_ALL: known[_ALL]}
        if self.config.starting_offsets == "latest":
            # The first manifest lists what is there already, and reading begins after it.
            if not self.manifests.lists and not self.manifests.add(self._list()):
                self.manifests.load()
            return {_ALL: 1}
        return {_ALL: 0}

    def bounds(self, position: Offsets) -> dict[Partition, Bounds]:
        if time.monotonic() >= self._next_look:
            self._look()
        return {_ALL: Bounds(0, len(self.manifests.lists) + len(self._pending))}

    def waiting(self, start: Offsets, end: Offsets) -> int:
        lists = [*self.manifests.lists, *self._pending][start[_ALL] : end[_ALL]]
        return sum(max(1, file.size // _RECORD_BYTES) for files in lists for file in files)

    def most(self, max_batch_size: int) -> int:
        return 1  # a manifest is about as large as an epoch may be

    def locate(self, place: Place, position: Offsets) -> Offsets:
        """Only what is in a manifest has an offset: to skip what is there, it is listed first."""
        self._look()
        while place == "latest" and self._pending:
            if not self.manifests.add(self._next_list()):
                self._look()
        there = len(self.manifests.lists)
        if isinstance(place, datetime):
            moment = (place if place.tzinfo else place.replace(tzinfo=timezone.utc)).timestamp()
            late = (
                n for n, files in enumerate(self.manifests.lists) if any(f.modified >= moment for f in files)
            )
            return {_ALL: next(late, there)}
        if isinstance(place, str):
            return {_ALL: 0 if place == "earliest" else there}
        return located(place, {_ALL: Bounds(0, there)})

    def read(self, start: Offsets, end: Offsets) -> DataFrame:
        while len(self.manifests.lists) < end[_ALL]:
            if not self.manifests.add(self._next_list()):
                self._look()  # another instance was first, perhaps with the same files
        files = [f for files in self.manifests.lists[start[_ALL] : end[_ALL]] for f in files]
        parts = [
            (os.fsencode(f.path), self._topic(f.path), f.modified, f.size, begin, stop)
            for f in files
            for begin, stop in splits(f.path, f.size)
        ]
        tasks = max(1, min(len(parts), 4 * self.spark.sparkContext.defaultParallelism))
        frame = self.spark.createDataFrame(parts, SPLIT_DDL).repartition(tasks)
        return frame.mapInArrow(read_lines, RECORD_DDL)

    def _ensure_manifests(self, offset: int) -> None:
        """Without its manifests an offset says nothing, and new files would get numbers it has passed."""
        there = len(self.manifests.lists)
        if offset > there:
            raise ProgressLost(
                f"the table has read {offset} lists of files, but {self.manifests.folder} holds {there}",
                hint="restore that folder from a backup; a new pipeline name reads all files again",
            )

    def _next_list(self) -> list[File]:
        """The next list without what went away or changed since it was looked at: a manifest is for ever."""
        for again in (False, True):
            if again:
                self._look()
            while self._pending:
                if files := [f for f in self._pending.pop(0) if self._look_at(f.path) == f]:
                    return files
        raise SourceUnavailable(
            f"files of {self.config.path!r} went away or changed before they were read",
            hint="what is there is read at the next attempt",
        )

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
        looked = time.monotonic()
        self._next_look = looked + max(_LOOK_SECONDS, _LOOK_SHARE * (looked - now))

    def _rests(self, file: File, now: float) -> bool:
        """By its own time, or, for clocks that disagree, by not having changed while we watched."""
        rest = self.config.rest_interval.total_seconds()
        watched = self._watched.get(file.path)
        return time.time() - file.modified >= rest or bool(
            watched and watched[0] == file and now - watched[1] >= rest
        )

    def _check(self, file: File) -> None:
        if file != self._taken[file.path] and self._first(file.path):
            name = folder.readable(file.path)
            self.scope.warn(
                "FileChanged", f"{name} changed after it was taken; what was added to it is not read"
            )

    def _unreadable(self, error: OSError) -> None:
        """Tell it and go on: what cannot be seen now is found by a later look."""
        if self._first(str(error)):
            name = folder.readable(error.filename)
            self.scope.warn("PathUnreadable", f"{name} is left out while it cannot be read: {error.strerror}")

    def _first(self, subject: str) -> bool:
        """Whether there has been no warning of this yet."""
        told = subject in self._warned
        self._warned.add(subject)
        return not told

    def _list(self) -> list[File]:
        mine = (
            path
            for path in folder.paths(self.config.path, self._unreadable)
            if self.scope.takes(self._topic(path))
        )
        return [file for path in mine if (file := self._look_at(path))]

    def _look_at(self, path: str) -> File | None:
        return folder.look_at(path, self._unreadable)

    def _topic(self, path: str) -> str:
        return str(self.config.topic or folder.readable(os.path.basename(os.path.dirname(path))))


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
