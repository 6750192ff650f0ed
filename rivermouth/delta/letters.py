"""Finds dead letters: counts of them, and the newest, however many there are.

A table of dead letters may be large, so columns are read in batches, without the records' values; whole
letters are read only for those that are shown. Moments are microseconds since 1970: a producer that gets them
wrong may name a year that Python does not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from functools import reduce
from operator import and_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyarrow import fs

from rivermouth.delta.dead_letters import SCHEMA
from rivermouth.delta.storage import parse_uri
from rivermouth.errors import DeltaWriterFailed

_GROUP = ("sink", "reason", "topic")
_PLACE = ("sink", "epoch", "topic", "partition", "offset")
_ORDER = ("day", "timestamp", *_PLACE)
_FILTERED = ("pipeline", "sink", "reason", "topic", "timestamp", "day", "replayed")
_PLACES = pa.schema(
    [pa.field(name, pa.int64() if name == "timestamp" else SCHEMA.field(name).type) for name in _ORDER]
)
_BATCH_ROWS = 10_000
_NEVER = 2**63 - 1


@dataclass(frozen=True)
class Filter:
    """Which dead letters are meant; what is left empty does not matter.

    `since` and `until` are compared with the record's own time. A letter without one, such as a gap row, is
    taken if any moment of the day it was met on would be.
    """

    pipeline: str
    sinks: tuple[str, ...]
    reasons: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None  # the first moment that is too late
    replayed: bool = False  # also those that have been replayed

    def expression(self) -> pc.Expression:
        """The filter as Arrow takes it."""
        parts = [pc.field("pipeline") == self.pipeline]
        for column, wanted in (("sink", self.sinks), ("reason", self.reasons), ("topic", self.topics)):
            if wanted:
                parts.append(pc.field(column).isin(list(wanted)))
        at, day = pc.field("timestamp"), pc.field("day")
        if self.since is not None:
            met = at.is_null() & (day >= pa.scalar(_utc(self.since).date()))
            parts.append((at >= _moment(self.since)) | met)
        if self.until is not None:
            met = at.is_null() & (day <= pa.scalar(_last_day(self.until)))
            parts.append((at < _moment(self.until)) | met)
        if not self.replayed:
            parts.append(pc.field("replayed").is_null())
        return reduce(and_, parts)

    def sql(self) -> str:
        """The same in Spark SQL, but for whose letters they are and whether they have been replayed."""
        parts = ["true"]
        for column, wanted in (("reason", self.reasons), ("topic", self.topics)):
            if wanted:
                parts.append(f"{column} IN ({', '.join(map(_quoted, wanted))})")
        if self.since is not None:
            met = f"timestamp IS NULL AND day >= DATE'{_utc(self.since).date()}'"
            parts.append(f"(timestamp >= TIMESTAMP'{_utc(self.since).isoformat()}' OR {met})")
        if self.until is not None:
            met = f"timestamp IS NULL AND day <= DATE'{_last_day(self.until)}'"
            parts.append(f"(timestamp < TIMESTAMP'{_utc(self.until).isoformat()}' OR {met})")
        return " AND ".join(parts)


@dataclass
class Group:
    """The dead letters of one sink, reason and topic."""

    sink: str
    reason: str
    topic: str | None
    total: int = 0
    replayed: int = 0
    first_time: int | None = None  # of the records themselves
    last_time: int | None = None
    first_day: date | None = None  # on which they were met
    last_day: date | None = None

    def add(self, row: Mapping[str, Any]) -> None:
        """Take in what was found in a batch."""
        self.total += row["day_count"]
        self.replayed += row["replayed_count"]
        self.first_time = _extreme(min, self.first_time, row["timestamp_min"])
        self.last_time = _extreme(max, self.last_time, row["timestamp_max"])
        self.first_day = _extreme(min, self.first_day, row["day_min"])
        self.last_day = _extreme(max, self.last_day, row["day_max"])


def count(uris: Iterable[str], wanted: Filter) -> list[Group]:
    """The letters in these tables by sink, reason and topic."""
    groups: dict[tuple[Any, ...], Group] = {}
    functions = [("day", "count"), ("replayed", "count")]
    functions += [(column, how) for column in ("timestamp", "day") for how in ("min", "max")]
    for table in _tables(uris):
        for found in table.find([*_GROUP, "timestamp", "day", "replayed"], wanted):
            for row in found.group_by(list(_GROUP)).aggregate(functions).to_pylist():
                key = tuple(row[column] for column in _GROUP)
                groups.setdefault(key, Group(*key)).add(row)
    return [groups[key] for key in sorted(groups, key=lambda key: tuple(map(str, key)))]


def newest(uris: Iterable[str], wanted: Filter, limit: int) -> list[dict[str, Any]]:
    """The letters met last, whole: newest day first, in a day by the records' own time."""
    tables = _tables(uris)
    if not tables:
        return []
    places = _first(pa.concat_tables(_newest_places(table, wanted, limit) for table in tables), limit)
    found: list[dict[str, Any]] = []
    for table in tables:
        found += table.whole(places, wanted)
    return sorted(found, key=_newness, reverse=True)[:limit]


def _newest_places(table: _Letters, wanted: Filter, limit: int) -> pa.Table:
    """Day by day, so that older days are not looked at once there are enough."""
    chosen = _PLACES.empty_table()
    for day in table.days():
        for found in table.find(_ORDER, wanted, pc.field("day") == pa.scalar(day)):
            chosen = _first(pa.concat_tables([chosen, found.cast(_PLACES)]), limit)
        if len(chosen) >= limit:
            break
    return chosen


def _first(places: pa.Table, limit: int) -> pa.Table:
    # A letter without a time comes first in its day: it tells of something rarer than a bad record.
    times = pc.fill_null(places.column("timestamp"), _NEVER)
    keys = places.set_column(_ORDER.index("timestamp"), "timestamp", times)
    return places.take(pc.sort_indices(keys, [(column, "descending") for column in _ORDER])[:limit])


def _newness(letter: Mapping[str, Any]) -> tuple[Any, ...]:
    return (
        letter["day"],
        _NEVER if letter["timestamp"] is None else letter["timestamp"],
        *(letter[column] for column in _PLACE),
    )


class _Letters:
    """One table of dead letters, to be read."""

    def __init__(self, delta: DeltaTable, uri: str) -> None:
        # Arrow's own file system: deltalake's calls Python from threads that read ahead.
        files, parquet = fs.SubTreeFileSystem(parse_uri(uri), fs.LocalFileSystem()), ds.ParquetFileFormat()
        if not {column.name for column in delta.schema().fields} >= set(SCHEMA.names[:-1]):
            raise DeltaWriterFailed(f"{uri} is no table of dead letters", hint="check dead_letter_uri")
        self._days: set[date] = set()
        fragments = []
        for file in delta.to_pyarrow_dataset(filesystem=files).get_fragments():
            # Of the log's statistics only the day is taken: where a bound is missing, as that of a time in an
            # odd year, deltalake would have Arrow skip the file. Arrow skips by the file's own statistics.
            day = ds.get_partition_keys(file.partition_expression)["day"]
            fragments.append(parquet.make_fragment(file.path, files, pc.field("day") == pa.scalar(day)))
            self._days.add(day)
        self._dataset = ds.FileSystemDataset(fragments, SCHEMA, parquet, files)

    def days(self) -> list[date]:
        """The days that have letters, newest first."""
        return sorted(self._days, reverse=True)

    def find(
        self, columns: Sequence[str], wanted: Filter, narrow: pc.Expression | None = None
    ) -> Iterator[pa.Table]:
        """The letters of a filter, some thousand at a time; `narrow` lets Arrow skip what is elsewhere."""
        scanner = self._dataset.scanner(
            columns=list(dict.fromkeys([*columns, *_FILTERED])),
            filter=narrow,
            batch_size=_BATCH_ROWS,
            batch_readahead=2,
            fragment_readahead=2,
        )
        for batch in scanner.to_batches():
            # Not in the scan: Arrow cannot compare the text columns of files that delta-rs has rewritten with
            # those files' statistics.
            found = pa.Table.from_batches([batch]).filter(wanted.expression()).select(list(columns))
            if len(found):
                yield _in_micros(found)

    def whole(self, places: pa.Table, wanted: Filter) -> list[dict[str, Any]]:
        """The letters of these places; one place may have more than one letter."""
        if not len(places):
            return []
        keys = {tuple(row[column] for column in _PLACE) for row in places.to_pylist()}
        near = [pc.field(name).isin(pc.unique(places.column(name))) for name in ("day", "epoch", "offset")]
        return [
            letter
            for found in self.find(SCHEMA.names, wanted, reduce(and_, near))
            for letter in found.to_pylist()
            if tuple(letter[column] for column in _PLACE) in keys
        ]


def _tables(uris: Iterable[str]) -> list[_Letters]:
    """The tables that are there, each once."""
    found = []
    for uri in dict.fromkeys(map(parse_uri, uris)):
        try:
            found.append(_Letters(DeltaTable(uri), uri))
        except TableNotFoundError:
            continue
        except (DeltaError, OSError) as error:
            raise DeltaWriterFailed(
                f"the dead-letter table {uri} cannot be opened: {error}",
                hint="check that its folder can be read",
            ) from error
    return found


def _in_micros(letters: pa.Table) -> pa.Table:
    """Letters with their moments as plain numbers."""
    fields = [
        pa.field(field.name, pa.int64()) if pa.types.is_timestamp(field.type) else field
        for field in letters.schema
    ]
    return letters.cast(pa.schema(fields))


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(timezone.utc)


def _last_day(until: datetime) -> date:
    """The last day that has moments before this one."""
    day, midnight = _utc(until).date(), _utc(until).time() == time()
    return day - timedelta(days=1) if midnight and day > date.min else day


def _quoted(text: str) -> str:
    """A text as a literal of Spark SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _moment(moment: datetime) -> pa.Scalar:
    return pa.scalar(_utc(moment), pa.timestamp("us", tz="UTC"))


def _extreme(choose: Any, one: Any, other: Any) -> Any:
    return choose((value for value in (one, other) if value is not None), default=None)
