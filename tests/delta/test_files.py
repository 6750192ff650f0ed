"""Files roll, partitions have folders, memory is bounded, and no row is lost or changed on the way."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from duckdb_extensions import import_extension
from pyarrow import fs

from rivermouth.delta import files
from rivermouth.delta.files import CODECS, TableWriter
from rivermouth.delta.storage import open_filesystem, parse_uri
from rivermouth.errors import DeltaWriterFailed, InvalidTableUri
from tests.delta.tables import UTC, create, on_disk, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NUMBERS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("text", pa.string())])


def numbers(start: int, count: int) -> pa.RecordBatch:
    ids = range(start, start + count)
    texts = [f"{i * 7919 % 1000003:x}" for i in ids]
    return pa.record_batch([pa.array(ids), pa.array(texts)], schema=NUMBERS)


PARTED = pa.schema([("p", pa.int32()), ("id", pa.int64())])


def parted(start: int, count: int, partitions: int) -> pa.RecordBatch:
    ids = range(start, start + count)
    return pa.record_batch(
        [pa.array([i % partitions for i in ids], pa.int32()), pa.array(ids)], schema=PARTED
    )


def open_writer(root: Path, schema: pa.Schema = NUMBERS, **options: Any) -> TableWriter:
    filesystem, folder = open_filesystem(str(root))
    return TableWriter(filesystem, folder, schema, **options)


def read_ids(root: Path, paths: list[str]) -> list[int]:
    return sorted(i for path in paths for i in pq.read_table(root / path)["id"].to_pylist())


def test_no_rows_make_no_file(tmp_path: Path) -> None:
    writer = open_writer(tmp_path / "t")
    writer.write(numbers(0, 0))
    assert writer.close() == []
    assert on_disk(tmp_path) == []


def test_a_file_is_named_by_task_and_chance(tmp_path: Path) -> None:
    writer = open_writer(tmp_path, task="7-2")
    writer.write(numbers(0, 3))
    (file,) = writer.close()
    assert re.fullmatch(r"part-7-2-[0-9a-f-]{36}\.snappy\.parquet", file.path)
    assert on_disk(tmp_path) == [file.path]
    assert (file.rows, file.partition_values) == (3, {})
    assert file.size == (tmp_path / file.path).stat().st_size


@pytest.mark.parametrize("batch_rows", [1_000, 20_000, 100_000])
def test_files_roll_at_the_target_and_no_row_is_lost(tmp_path: Path, batch_rows: int) -> None:
    target = 100_000
    writer = open_writer(tmp_path, target_file_size=target)
    for start in range(0, 100_000, batch_rows):
        writer.write(numbers(start, batch_rows))
    done = writer.close()
    assert len(done) > 5
    assert sorted(f.path for f in done) == on_disk(tmp_path)
    assert all(target * 0.9 <= f.size <= target * 1.3 for f in done[:-1]), [f.size for f in done]
    assert sum(f.rows for f in done) == 100_000
    assert read_ids(tmp_path, [f.path for f in done]) == list(range(100_000))


def test_row_groups_have_a_size_whatever_the_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_GROUP_ROWS", 1000)
    writer = open_writer(tmp_path)
    for start in range(0, 2500, 250):
        writer.write(numbers(start, 250))
    writer.write(numbers(2500, 2500))
    (file,) = writer.close()
    footer = pq.read_metadata(tmp_path / file.path)
    assert [footer.row_group(n).num_rows for n in range(footer.num_row_groups)] == [
        1000,
        1000,
        1500,
        1000,
        500,
    ]


def test_many_partitions_share_a_bounded_buffer_and_few_open_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_OPEN_FILES", 3)
    monkeypatch.setattr(files, "_BUFFER_BYTES", 60_000)
    writer = open_writer(tmp_path, PARTED, partition_columns=["p"])
    most_open = 0
    for start in range(0, 20_000, 1000):
        writer.write(parted(start, 1000, 10))
        most_open = max(most_open, len(writer._open))
        assert writer._buffered <= 60_000
    done = writer.close()
    assert most_open == 3
    assert sum(f.rows for f in done) == 20_000
    assert read_ids(tmp_path, [f.path for f in done]) == list(range(20_000))
    for file in done:
        ids = pq.read_table(tmp_path / file.path)["id"].to_pylist()
        assert {str(i % 10) for i in ids} == {file.partition_values["p"]}
    assert writer._buffered == 0


@pytest.mark.parametrize("open_files", [2, 5])
def test_skewed_partitions_are_written_whole_when_memory_and_files_run_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_files: int
) -> None:
    monkeypatch.setattr(files, "_OPEN_FILES", open_files)
    monkeypatch.setattr(files, "_BUFFER_BYTES", 60_000)
    chance = random.Random(1)
    weights = [1 / (rank + 1) ** 1.3 for rank in range(40)]  # Zipf's: few large partitions, many small ones
    by_id = chance.choices(range(40), weights, k=20_000)
    writer = open_writer(tmp_path, PARTED, partition_columns=["p"])
    for start in range(0, 20_000, 500):
        keys, ids = pa.array(by_id[start : start + 500], pa.int32()), pa.array(range(start, start + 500))
        writer.write(pa.record_batch([keys, ids], schema=PARTED))
        assert writer._buffered <= 60_000
        assert len(writer._open) <= open_files
    done = writer.close()
    assert writer._buffered == 0
    assert sorted(f.path for f in done) == on_disk(tmp_path)
    assert read_ids(tmp_path, [f.path for f in done]) == list(range(20_000))
    for file in done:
        ids = pq.read_table(tmp_path / file.path)["id"].to_pylist()
        assert {str(by_id[i]) for i in ids} == {file.partition_values["p"]}


def test_few_rows_in_many_partitions_make_one_file_each(tmp_path: Path) -> None:
    writer = open_writer(tmp_path, PARTED, partition_columns=["p"])
    for start in range(0, 1000, 200):
        writer.write(parted(start, 200, 100))
    assert len(writer.close()) == 100


def test_partition_columns_are_in_the_folder_and_not_in_the_file(tmp_path: Path) -> None:
    schema = pa.schema([("value", pa.binary()), ("reason", pa.string()), ("day", pa.date32())])
    rows = [
        {"value": b"{", "reason": "InvalidJson", "day": date(2026, 1, 1)},
        {"value": None, "reason": "NullValue", "day": None},
    ]
    done = write(tmp_path, [pa.RecordBatch.from_pylist(rows, schema)], partition_columns=["day"])
    values = {f.path.split("/")[0]: f.partition_values for f in done}
    assert values == {
        "day=2026-01-01": {"day": "2026-01-01"},
        "day=__HIVE_DEFAULT_PARTITION__": {"day": None},
    }
    assert all(pq.read_schema(tmp_path / f.path).names == ["value", "reason"] for f in done)
    assert all("day" not in json.loads(f.stats)["nullCount"] for f in done)
    table = create(tmp_path, schema, done, ["day"]).to_pyarrow_table()
    assert sorted(table.to_pylist(), key=str) == sorted(rows, key=str)


def test_abort_deletes_open_and_finished_files_and_nothing_else(tmp_path: Path) -> None:
    other = tmp_path / "part-0-other.parquet"
    other.touch()
    writer = open_writer(tmp_path, target_file_size=100_000)
    writer.write(numbers(0, 30_000))
    while not writer._open:
        writer.write(numbers(0, 1000))
    assert len(on_disk(tmp_path)) > 3
    writer.abort()
    assert on_disk(tmp_path) == [other.name]
    writer.abort()


def test_abort_after_the_folder_vanished_is_quiet(tmp_path: Path) -> None:
    writer = open_writer(tmp_path / "t", target_file_size=100_000)
    writer.write(numbers(0, 30_000))
    fs.LocalFileSystem().delete_dir(str(tmp_path / "t"))
    writer.abort()
    assert on_disk(tmp_path) == []


ITEM = pa.field("element", pa.int64(), nullable=False)


@pytest.mark.parametrize(
    ("kind", "nullable", "value", "place"),
    [
        (pa.int64(), False, None, "x is required"),
        (pa.struct([pa.field("a", pa.int64(), nullable=False)]), True, {"a": None}, "x.a is required"),
        (pa.list_(ITEM), True, [1, None], "x.element is required"),
        (pa.list_(pa.struct([ITEM])), True, [{"element": None}], "x.element.element is required"),
        (pa.map_(pa.string(), ITEM), True, [("k", None)], "x.value is required"),
    ],
)
def test_a_null_where_none_may_be_is_refused(
    tmp_path: Path, kind: pa.DataType, nullable: bool, value: Any, place: str
) -> None:
    schema = pa.schema([pa.field("x", kind, nullable=nullable)])
    batch = pa.RecordBatch.from_arrays([pa.array([value], kind)], schema=schema)
    with pytest.raises(DeltaWriterFailed, match=place):
        open_writer(tmp_path, schema).write(batch)
    assert on_disk(tmp_path) == []


def test_a_null_parent_of_a_required_field_is_fine(tmp_path: Path) -> None:
    inner = pa.struct([pa.field("a", pa.int64(), nullable=False), ("l", pa.list_(ITEM))])
    schema = pa.schema([("s", inner), ("m", pa.map_(pa.string(), ITEM))])
    rows = [
        {"s": None, "m": None},
        {"s": {"a": 1, "l": None}, "m": []},
        {"s": {"a": 2, "l": [3]}, "m": [("k", 4)]},
    ]
    (file,) = write(tmp_path, [pa.RecordBatch.from_pylist(rows, schema)])
    assert pq.read_table(tmp_path / file.path).to_pylist() == rows


@pytest.mark.parametrize(
    "kind",
    [
        pa.uint8(),
        pa.timestamp("ns"),
        pa.time64("us"),
        pa.float16(),
        pa.list_(pa.uint32()),
        pa.decimal256(50, 0),
    ],
)
def test_types_that_delta_does_not_have_are_refused(tmp_path: Path, kind: pa.DataType) -> None:
    with pytest.raises(DeltaWriterFailed, match="'x' has type"):
        open_writer(tmp_path, pa.schema([("x", kind)]))


def test_foreign_columns_and_types_are_refused(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    with pytest.raises(DeltaWriterFailed, match="the rows have columns id, other"):
        writer.write(pa.record_batch({"id": [1], "other": ["a"]}))
    with pytest.raises(DeltaWriterFailed, match="'text' is int64"):
        writer.write(pa.record_batch({"id": [1], "text": [1]}))
    with pytest.raises(DeltaWriterFailed, match="compression 'lzo'"):
        open_writer(tmp_path, compression="lzo")


def test_another_spelling_of_the_same_type_is_taken(tmp_path: Path) -> None:
    schema = pa.schema([("t", pa.timestamp("us", "UTC")), ("l", pa.list_(pa.field("element", pa.string())))])
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    columns = {
        "l": pa.array([["a"]], pa.large_list(pa.large_string())),
        "t": pa.array([moment], pa.timestamp("us", "Europe/Paris")),
    }
    (file,) = write(tmp_path, [pa.record_batch(columns)], schema=schema)
    assert pq.read_table(tmp_path / file.path).to_pylist() == [{"t": moment, "l": ["a"]}]


EVERY_TYPE = pa.schema(
    [
        pa.field("required", pa.int32(), nullable=False),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("ntz", pa.timestamp("us")),
        ("date", pa.date32()),
        ("d9", pa.decimal128(9, 2)),
        ("d18", pa.decimal128(18, 3)),
        ("d38", pa.decimal128(38, 10)),
        ("binary", pa.binary()),
        ("array", pa.list_(pa.struct([("k", pa.string()), ("v", pa.binary())]))),
        ("map", pa.map_(pa.string(), pa.list_(pa.float64()))),
        ("struct", pa.struct([("a", pa.int8()), ("b", pa.struct([("c", pa.bool_())]))])),
    ]
)
EVERY_ROW: list[dict[str, Any]] = [
    {
        "required": 1,
        "timestamp": datetime(2026, 1, 1, 1, 2, 3, 4, UTC),
        "ntz": datetime(2026, 1, 1, 1, 2, 3, 4),
        "date": date(2026, 1, 1),
        "d9": Decimal("-1.50"),
        "d18": Decimal("123456789012345.678"),
        "d38": Decimal("1234567890123456789012345678.0123456789"),
        "binary": b"\x00\xff",
        "array": [{"k": "a", "v": b"b"}, None, {"k": None, "v": None}],
        "map": [("a", [1.0, None]), ("b", None)],
        "struct": {"a": 1, "b": {"c": True}},
    },
    {name: 2 if name == "required" else None for name in EVERY_TYPE.names},
]


def test_the_parquet_schema_is_what_delta_readers_want(tmp_path: Path) -> None:
    (file,) = write(tmp_path, [pa.RecordBatch.from_pylist(EVERY_ROW, EVERY_TYPE)])
    footer = pq.read_metadata(tmp_path / file.path)
    assert footer.metadata is None
    columns = {footer.schema.column(n).path: footer.schema.column(n) for n in range(len(footer.schema))}
    assert columns["required"].max_definition_level == 0
    assert columns["date"].max_definition_level == 1
    assert columns["timestamp"].physical_type == columns["ntz"].physical_type == "INT64"
    for name, adjusted in (("timestamp", True), ("ntz", False)):
        logical = json.loads(columns[name].logical_type.to_json())
        assert (logical["isAdjustedToUTC"], logical["timeUnit"]) == (adjusted, "microseconds")
    kinds = [columns[name].physical_type for name in ("d9", "d18", "d38")]
    assert kinds == ["INT32", "INT64", "FIXED_LEN_BYTE_ARRAY"]
    assert {"array.list.element.k", "map.key_value.key", "map.key_value.value.list.element"} <= set(columns)


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    import_extension("delta")
    with duckdb.connect() as connection:
        connection.execute("LOAD delta")
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def test_every_codec_is_read_by_every_reader(
    tmp_path: Path, duck: duckdb.DuckDBPyConnection, spark: SparkSession
) -> None:
    # delta-rs makes no table with both a required column and a timestamp_ntz that delta-spark would open.
    schema = pa.schema([each.with_nullable(True) for each in EVERY_TYPE])
    done, codecs = [], []
    for number, codec in enumerate(CODECS):
        rows = pa.RecordBatch.from_pylist([{**row, "required": number} for row in EVERY_ROW], schema)
        done += write(tmp_path, [rows], compression=codec)
        codecs.append(pq.read_metadata(tmp_path / done[-1].path).row_group(0).column(0).compression)
    assert codecs == ["SNAPPY", "GZIP", "LZ4", "ZSTD", "UNCOMPRESSED"]
    create(tmp_path, schema, done)
    expected = [{**row, "required": number} for number in range(5) for row in EVERY_ROW]

    def ordered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return sorted(rows, key=lambda row: (row["required"], row["date"] is None))

    assert ordered(DeltaTable(str(tmp_path)).to_pyarrow_table().to_pylist()) == expected
    found = duck.execute(f"SELECT * FROM delta_scan('{tmp_path}')").to_arrow_table()
    assert ordered(found.select(EVERY_TYPE.names).to_pylist()) == expected
    table = spark.read.format("delta").load(str(tmp_path))
    for row, wanted in zip(ordered([r.asDict(True) for r in table.collect()]), expected, strict=True):
        assert {**row, "timestamp": None, "map": None} == {**wanted, "timestamp": None, "map": None}
        assert row["map"] == (None if wanted["map"] is None else dict(wanted["map"]))
    moments = table.selectExpr("unix_micros(timestamp) AS at").where("at IS NOT NULL").distinct().collect()
    assert [row.at for row in moments] == [
        int(datetime(2026, 1, 1, 1, 2, 3, tzinfo=UTC).timestamp()) * 10**6 + 4
    ]


def test_addresses_of_one_table_have_one_spelling(tmp_path: Path) -> None:
    folder = tmp_path / "a b"
    assert parse_uri(str(folder)) == parse_uri(folder.as_uri()) == str(folder.resolve())
    assert open_filesystem(f"{folder}/")[1] == str(folder.resolve())


@pytest.mark.parametrize("uri", ["", "s3://bucket/t", "file://host/t", "/", "file:///"])
def test_addresses_that_cannot_be_a_table_are_refused(uri: str) -> None:
    with pytest.raises(InvalidTableUri):
        open_filesystem(uri)


def test_a_file_is_not_a_table(tmp_path: Path) -> None:
    (tmp_path / "t").touch()
    with pytest.raises(InvalidTableUri, match="is a file"):
        open_filesystem(str(tmp_path / "t"))
