"""Partition values survive the way into a folder's name and the log, and back through every reader."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import QueryBuilder
from duckdb_extensions import import_extension
from hypothesis import given, settings
from hypothesis import strategies as st

from rivermouth.delta import partitions
from rivermouth.errors import DeltaWriterFailed
from tests.delta.tables import KINDS, UTC, create, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        ("a b/ü", pa.string(), "a b/ü"),
        (-128, pa.int8(), "-128"),
        (2**63 - 1, pa.int64(), "9223372036854775807"),
        (True, pa.bool_(), "true"),
        (False, pa.bool_(), "false"),
        (1e16, pa.float64(), "1e+16"),
        (-0.0, pa.float64(), "-0.0"),
        (float("inf"), pa.float64(), "Infinity"),
        (float("-inf"), pa.float32(), "-Infinity"),
        (float("nan"), pa.float64(), "NaN"),
        (Decimal("-0.0000000010"), pa.decimal128(38, 10), "-0.0000000010"),
        (Decimal("12.50"), pa.decimal128(5, 2), "12.50"),
        (date(1, 1, 1), pa.date32(), "0001-01-01"),
        (datetime(2026, 1, 2, 3, 4, 5, 6, UTC), pa.timestamp("us", "UTC"), "2026-01-02T03:04:05.000006Z"),
        (datetime(1, 1, 1), pa.timestamp("us"), "0001-01-01 00:00:00.000000"),
        (None, pa.date32(), None),
    ],
)
def test_a_value_is_spelt_as_the_protocol_says(value: Any, kind: pa.DataType, text: str | None) -> None:
    assert partitions.serialize(pa.scalar(value, kind)) == text


@pytest.mark.parametrize(
    ("columns", "key", "folder"),
    [
        ([], (), ""),
        (["date"], ("2026-01-01",), "date=2026-01-01"),
        (["a", "b"], (None, "x y"), "a=__HIVE_DEFAULT_PARTITION__/b=x y"),
        (["p"], ("a/b:c%d=e\x00\x7f",), "p=a%2Fb%3Ac%25d%3De%00%7F"),
        (["a=b"], ("..",), "a%3Db=.."),
    ],
)
def test_folders_are_named_as_hive_does(columns: list[str], key: partitions.Key, folder: str) -> None:
    assert partitions.folder(columns, key) == folder


@given(st.text(max_size=300))
def test_any_value_makes_a_folder_name_that_a_file_system_takes(value: str) -> None:
    name = partitions.folder(["p"], (value,))
    assert "/" not in name and "\x00" not in name
    assert len(name.encode()) <= 255


def test_long_values_with_the_same_beginning_have_folders_of_their_own() -> None:
    assert partitions.folder(["p"], ("x" * 300 + "a",)) != partitions.folder(["p"], ("x" * 300 + "b",))


@pytest.mark.parametrize("kind", [pa.binary(), pa.list_(pa.int64()), pa.struct([("a", pa.int64())])])
def test_unfit_types_are_refused(kind: pa.DataType) -> None:
    with pytest.raises(DeltaWriterFailed, match="'p' of type"):
        partitions.check_columns(pa.schema([("p", kind), ("v", pa.int64())]), ["p"])


@pytest.mark.parametrize(
    ("columns", "message"),
    [(["q"], "'q' is not a column"), (["p", "v"], "every column"), (["p", "p"], "named twice")],
)
def test_unfit_columns_are_refused(columns: list[str], message: str) -> None:
    with pytest.raises(DeltaWriterFailed, match=message):
        partitions.check_columns(pa.schema([("p", pa.string()), ("v", pa.int64())]), columns)


def test_rows_whose_value_delta_cannot_hold_are_found() -> None:
    year_10000 = 253402300800000000
    batch = pa.record_batch(
        {
            "s": ["a", "", None, "b", "c"],
            "d": pa.array([0, 1, None, -(2**31), 5], pa.int32()).cast(pa.date32()),
            "t": pa.array([year_10000 - 1, 0, None, 0, year_10000], pa.timestamp("us", "UTC")),
        }
    )
    assert partitions.unfit(batch, ["s"]).to_pylist() == [False, True, False, False, False]
    assert partitions.unfit(batch, ["s", "d", "t"]).to_pylist() == [False, True, False, True, True]
    assert partitions.unfit(batch.slice(0, 1), ["s", "d", "t"]) is None
    assert partitions.unfit(batch, []) is None


def test_a_batch_of_one_partition_is_not_copied() -> None:
    batch = pa.record_batch({"p": ["a", "a"], "q": pa.array([None, None], pa.int64()), "v": [1, 2]})
    ((key, rows),) = partitions.split(batch, ["p", "q"])
    assert key == ("a", None)
    assert rows.schema.names == ["v"]
    assert rows.column("v").buffers()[1].address == batch.column("v").buffers()[1].address


_ROWS = st.lists(
    st.tuples(st.sampled_from(["a", "b", None]), st.sampled_from([0.0, -0.0, math.nan, None]), st.booleans()),
    min_size=1,
)


@given(_ROWS)
def test_rows_are_split_by_all_columns_and_keep_their_order(rows: list[tuple[Any, ...]]) -> None:
    names = ["p", "q", "r"]
    columns = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), _TYPES, strict=True)]
    batch = pa.record_batch([*columns, pa.array(range(len(rows)))], names=[*names, "v"])
    expected: dict[partitions.Key, list[int]] = {}
    for number, row in enumerate(rows):
        key = tuple(partitions.serialize(pa.scalar(v, t)) for v, t in zip(row, _TYPES, strict=True))
        expected.setdefault(key, []).append(number)
    parts = [(key, part["v"].to_pylist()) for key, part in partitions.split(batch, names)]
    assert dict(parts) == expected
    assert len(parts) == len(expected)


_TYPES = [pa.string(), pa.float64(), pa.bool_()]


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    import_extension("delta")
    with duckdb.connect() as connection:
        connection.execute("LOAD delta")
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def same(one: Any, other: Any) -> bool:
    return one == other or (one != one and other != other)


@st.composite
def partitioned(draw: st.DrawFn) -> tuple[str, list[Any]]:
    name = draw(st.sampled_from(sorted(KINDS)))
    values = KINDS[name].values.filter(lambda value: value != "")
    return name, draw(st.lists(st.none() | values, min_size=1, max_size=6))


@settings(max_examples=30)
@given(partitioned())
def test_readers_find_the_rows_of_a_partition(
    duck: duckdb.DuckDBPyConnection, table: tuple[str, list[Any]]
) -> None:
    name, values = table
    kind = KINDS[name]
    column = pa.array(values, kind.type)
    batch = pa.record_batch({"p": column, "id": range(len(values))})
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "a table")
        delta = create(root, batch.schema, write(root, [batch], partition_columns=["p"]), ["p"])
        engine = QueryBuilder().register("t", delta)
        scan = f"delta_scan('{root}')"
        stored = column.to_pylist()
        everything = pa.table(engine.execute("SELECT id, p FROM t ORDER BY id").read_all())
        assert all(map(same, everything["p"].to_pylist(), stored))
        for value in {repr(value): value for value in stored}.values():
            if value is None:
                where = {"duckdb": "p IS NULL", "datafusion": "p IS NULL"}
            else:
                where = {d: f"p = {getattr(kind, d)(value)}" for d in ("duckdb", "datafusion")}
            # An engine decides which values are equal (zeros are to DuckDB); a projection skips nothing.
            full = pa.table(engine.execute(f"SELECT id, {where['datafusion']} AS hit FROM t").read_all())
            found = pa.table(engine.execute(f"SELECT id FROM t WHERE {where['datafusion']}").read_all())
            # Of the two zeros delta-rs skips one, and calls them equal in a projection.
            if not (isinstance(value, float) and value == 0):
                assert Counter(found["id"].to_pylist()) == Counter(
                    row["id"] for row in full.to_pylist() if row["hit"]
                )
            duck.execute("CREATE OR REPLACE TEMP TABLE original AS SELECT * FROM batch")
            query = "SELECT id FROM {} WHERE {} ORDER BY id"
            expected = duck.execute(query.format("original", where["duckdb"])).fetchall()
            assert expected
            assert duck.execute(query.format(scan, where["duckdb"])).fetchall() == expected


def test_delta_spark_reads_every_kind_of_partition(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql import functions as f

    texts = ["a b", "50%", "ü/ß", "x=y:z", "..", "__HIVE_DEFAULT_PARTITION__", "l" * 300, "é+&#?'\"\\", None]
    rows = [
        {
            "s": text,
            "t": datetime(2026, 1, 1, 0, 0, 0, number, UTC),
            "d": date(2026, 1, number + 1),
            "b": number % 2 == 0,
            "n": Decimal(number).scaleb(-2),
            "f": [0.1, float("inf"), float("nan")][number % 3],
            "id": number,
        }
        for number, text in enumerate(texts)
    ]
    schema = pa.schema(
        [
            ("s", pa.string()),
            ("t", pa.timestamp("us", "UTC")),
            ("d", pa.date32()),
            ("b", pa.bool_()),
            ("n", pa.decimal128(5, 2)),
            ("f", pa.float64()),
            ("id", pa.int64()),
        ]
    )
    batch = pa.RecordBatch.from_pylist(rows, schema)
    by = ["s", "t", "d", "b", "n", "f"]
    root = tmp_path / "a table"
    create(root, schema, write(root, [batch], partition_columns=by), by)
    table = spark.read.format("delta").load(str(root))
    micros = f.unix_micros("t").alias("t")
    read = table.orderBy("id").select("s", micros, "d", "b", "n", "f", "id").collect()
    expected = batch.set_column(1, "t", batch["t"].cast(pa.int64())).to_pylist()
    assert all(
        same(row[name], wanted[name])
        for row, wanted in zip(read, expected, strict=True)
        for name in schema.names
    )
    assert [row.id for row in table.where(f.col("s") == "ü/ß").collect()] == [2]
    assert [row.id for row in table.where("t = timestamp'2026-01-01 00:00:00.000003'").collect()] == [3]


def test_an_empty_string_is_refused_because_readers_take_it_for_null(tmp_path: Path) -> None:
    batch = pa.record_batch({"p": ["a", ""], "v": [1, 2]})
    with pytest.raises(DeltaWriterFailed, match="empty string"):
        write(tmp_path, [batch], partition_columns=["p"])
    kept = batch.filter(pc.invert(partitions.unfit(batch, ["p"])))
    (file,) = write(tmp_path, [kept], partition_columns=["p"])
    assert (file.rows, file.partition_values) == (1, {"p": "a"})
