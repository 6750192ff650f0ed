"""A wrong statistic is a wrong query result: bounds hold, and no reader skips a row it should find."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, QueryBuilder
from duckdb_extensions import import_extension
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rivermouth.delta.statistics import Plan, decimal_text, indexed_columns, prefix_above
from tests.delta.tables import KINDS, UTC, Sample, create, samples, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def statistics(tmp_path: Path, values: pa.Array, **options: Any) -> dict[str, Any]:
    """The statistics of a file with one column `x`."""
    (file,) = write(tmp_path, [pa.record_batch({"x": values})], **options)
    found: dict[str, Any] = json.loads(file.stats, parse_float=Decimal)
    return found


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        (pa.array([3, None, -7], pa.int64()), -7, 3),
        (pa.array([-(2**63), 2**63 - 1], pa.int64()), -(2**63), 2**63 - 1),
        (pa.array([0.5, None, 2.5]), Decimal("0.5"), Decimal("2.5")),
        (pa.array([0.0, -0.0]), Decimal("-0.0"), Decimal("0.0")),
        (pa.array([float("-inf"), 2.5]), "-Infinity", Decimal("2.5")),
        (pa.array([1.0, float("inf")]), Decimal("1.0"), "Infinity"),
        (pa.array([1.0, float("nan")]), None, None),
        (pa.array([float("nan")], pa.float32()), None, None),
        (pa.array([date(1969, 12, 31), date(2026, 1, 1)]), "1969-12-31", "2026-01-01"),
        (pa.array([-(2**31)], pa.int32()).view(pa.date32()), None, None),
        (
            pa.array([Decimal("-0.05"), Decimal("1.50")], pa.decimal128(5, 2)),
            Decimal("-0.05"),
            Decimal("1.50"),
        ),
        (
            pa.array([Decimal("12345678901234567890123456.7890123456")], pa.decimal128(38, 10)),
            Decimal("12345678901234567890123456.7890123456"),
            Decimal("12345678901234567890123456.7890123456"),
        ),
        (pa.array(["b", "", None, "ä"]), "", "ä"),
        (pa.array(["b\x00"]), "b\x00", "b\x00"),
        (pa.array(["a" * 33]), "a" * 32, "a" * 31 + "b"),
        (pa.array(["\U0010ffff" * 33]), "\U0010ffff" * 32, "\U0010ffff" * 33),
        (pa.array(["a" * 5000]), "a" * 32, "a" * 31 + "b"),  # too long for the Parquet footer
        (pa.array(["a" * 5000, "b", None]), "a" * 32, "b"),
        (pa.array([True, False]), False, True),
        (pa.array([b"\x00\xff"]), None, None),
        (pa.array([None, None], pa.string()), None, None),
    ],
)
def test_bounds_are_what_delta_demands(tmp_path: Path, values: pa.Array, low: Any, high: Any) -> None:
    found = statistics(tmp_path, values)
    assert found["numRecords"] == len(values)
    assert found["nullCount"] == {"x": values.null_count}
    assert str(found.get("minValues", {}).get("x")) == str(low)
    assert str(found.get("maxValues", {}).get("x")) == str(high)


@pytest.mark.parametrize(
    ("first", "last", "low", "high"),
    [
        ("2026-01-01T00:00:00.000999", "2026-01-01T00:00:00.001001", "00.000", "00.002"),
        ("2026-01-01T00:00:00.001000", "2026-01-01T00:00:00.001000", "00.001", "00.001"),
    ],
)
def test_a_moment_is_truncated_below_and_rounded_up_above(
    tmp_path: Path, first: str, last: str, low: str, high: str
) -> None:
    moments = [datetime.fromisoformat(first), datetime.fromisoformat(last)]
    found = statistics(tmp_path / "a", pa.array(moments, pa.timestamp("us", "UTC")))
    assert found["minValues"]["x"] == f"2026-01-01T00:00:{low}Z"
    assert found["maxValues"]["x"] == f"2026-01-01T00:00:{high}Z"
    found = statistics(tmp_path / "b", pa.array(moments, pa.timestamp("us")))
    assert found["minValues"]["x"] == f"2026-01-01T00:00:{low}"
    assert found["maxValues"]["x"] == f"2026-01-01T00:00:{high}"


def test_moments_round_toward_the_past_before_1970_and_have_no_bound_outside_the_calendar(
    tmp_path: Path,
) -> None:
    found = statistics(tmp_path / "a", pa.array([-1], pa.timestamp("us", "UTC")))
    assert found["minValues"]["x"] == "1969-12-31T23:59:59.999Z"
    assert found["maxValues"]["x"] == "1970-01-01T00:00:00.000Z"
    last = pa.array([datetime(9999, 12, 31, 23, 59, 59, 999999)], pa.timestamp("us", "UTC"))
    found = statistics(tmp_path / "b", last)
    assert found["minValues"]["x"] == "9999-12-31T23:59:59.999Z"
    assert found["maxValues"]["x"] == "9999-12-31T23:59:59.999Z"
    found = statistics(tmp_path / "c", pa.array([-(2**63), 2**63 - 1], pa.timestamp("us", "UTC")))
    assert found == {"numRecords": 2, "nullCount": {"x": 0}}


def test_a_file_has_all_bounds_or_none(tmp_path: Path) -> None:
    columns = {
        "i": [1, 2],
        "f": [1.0, float("nan")],
        "n": pa.array([None, None], pa.int64()),
        "b": [b"", b""],
    }
    (file,) = write(tmp_path, [pa.record_batch(columns)])
    assert json.loads(file.stats) == {"numRecords": 2, "nullCount": {"i": 0, "f": 0, "n": 2, "b": 0}}
    columns["f"] = [1.0, 2.0]
    (file,) = write(tmp_path, [pa.record_batch(columns)])
    assert json.loads(file.stats)["maxValues"] == {"i": 2, "f": 2.0}


def test_nested_fields_are_nested_and_contents_of_arrays_and_maps_have_none(tmp_path: Path) -> None:
    inner = pa.struct([("n", pa.int32())])
    schema = pa.schema(
        [
            ("m", pa.map_(pa.string(), pa.float64())),
            (
                "s",
                pa.struct([("f", pa.float64()), ("l", pa.list_(pa.int64())), ("t", inner)]),
            ),
            ("z", pa.int64()),
        ]
    )
    rows = [
        {"m": [("a", 1.0)], "s": {"f": 1.5, "l": [1, 2], "t": {"n": 4}}, "z": 1},
        {"m": None, "s": None, "z": 2},
        {"m": [], "s": {"f": None, "l": [], "t": None}, "z": None},
    ]
    (file,) = write(tmp_path, [pa.RecordBatch.from_pylist(rows, schema)])
    assert json.loads(file.stats) == {
        "numRecords": 3,
        "minValues": {"s": {"f": 1.5, "t": {"n": 4}}, "z": 1},
        "maxValues": {"s": {"f": 1.5, "t": {"n": 4}}, "z": 2},
        "nullCount": {"m": 1, "s": {"f": 2, "l": 1, "t": {"n": 2}}, "z": 1},
    }


@pytest.mark.parametrize(
    ("indexed", "columns"),
    [
        (2, ["a", "s.b"]),
        (0, []),
        (-1, ["a", "s.b", "s.c", "l", "z"]),
        (("s", "z"), ["s.b", "s.c", "z"]),
        (("s.c",), ["s.c"]),
    ],
)
def test_statistics_are_kept_for_the_columns_the_table_names(indexed: Any, columns: list[str]) -> None:
    inner = pa.struct([("b", pa.int64()), ("c", pa.float64())])
    schema = pa.schema([("a", pa.int64()), ("s", inner), ("l", pa.list_(pa.int8())), ("z", pa.string())])
    assert [".".join(leaf.path) for leaf in Plan(schema, indexed).leaves] == columns


def test_table_properties_say_which_columns() -> None:
    assert indexed_columns({}) == 32
    assert indexed_columns({"delta.dataSkippingNumIndexedCols": "-1"}) == -1
    both = {"delta.dataSkippingNumIndexedCols": "3", "delta.dataSkippingStatsColumns": "a, `b c`.d"}
    assert indexed_columns(both) == ("a", "b c.d")


def test_only_the_first_32_columns_have_statistics(tmp_path: Path) -> None:
    (file,) = write(tmp_path, [pa.record_batch({f"c{n}": [n] for n in range(40)})])
    assert list(json.loads(file.stats)["minValues"]) == [f"c{n}" for n in range(32)]


def test_row_groups_are_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rivermouth.delta.files._GROUP_ROWS", 2)
    columns = {
        "i": [5, 6, None, None, 1, 9],
        "f": [5.0, 6.0, None, None, 1.0, 9.0],
        "s": ["b", "c", "x" * 5000, "d", "a", "a"],
        "d18": decimals(["-5", "-1", None, None, "3", "10"], 18, 2),
        "d38": decimals(["-5", "-1", None, None, "3", "10"], 38, 2),
    }
    (file,) = write(tmp_path, [pa.record_batch(columns)])
    assert json.loads(file.stats) == {
        "numRecords": 6,
        "minValues": {"i": 1, "f": 1.0, "s": "a", "d18": -5, "d38": -5},
        "maxValues": {"i": 9, "f": 9.0, "s": "x" * 31 + "y", "d18": 10, "d38": 10},
        "nullCount": {"i": 2, "f": 2, "s": 0, "d18": 2, "d38": 2},
    }


def decimals(texts: list[str | None], precision: int, scale: int) -> pa.Array:
    kind = pa.decimal128(precision, scale)
    return pa.array([None if text is None else Decimal(text) for text in texts], kind)


@given(st.data(), st.sampled_from(["decimal9", "decimal18", "decimal38"]), st.integers(1, 3))
def test_bounds_of_decimals_are_exact_over_row_groups(data: st.DataObject, name: str, group: int) -> None:
    kind = KINDS[name]
    values = data.draw(st.lists(st.none() | kind.values, min_size=2, max_size=8))
    there = [value for value in values if value is not None]
    assume(there)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("rivermouth.delta.files._GROUP_ROWS", group)
        found = statistics(Path(folder), pa.array(values, kind.type))
    assert (found["minValues"]["x"], found["maxValues"]["x"]) == (min(there), max(there))
    assert found["nullCount"]["x"] == len(values) - len(there)


@given(st.text(max_size=40))
def test_a_prefix_above_is_above(text: str) -> None:
    above = prefix_above(text)
    assert above.encode() >= text.encode()
    assert len(above) <= 32 or text.startswith("\U0010ffff" * 32)


@given(st.integers(-(10**38), 10**38), st.integers(0, 38))
def test_a_decimal_is_written_with_all_its_digits(unscaled: int, scale: int) -> None:
    text = decimal_text(unscaled, scale)
    assert "E" not in text
    assert Decimal(text).as_tuple() == Decimal((int(unscaled < 0), _digits(unscaled), -scale)).as_tuple()


def _digits(number: int) -> tuple[int, ...]:
    return Decimal(abs(number)).as_tuple().digits


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    import_extension("delta")
    with duckdb.connect() as connection:
        connection.execute("LOAD delta")
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def on_table(check: Callable[[Sample, DeltaTable], None], sample: Sample) -> None:
    """Write and commit a sample, in files of one or two row groups, and check its table."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("rivermouth.delta.files._GROUP_ROWS", 2)
        root = Path(folder, "table")
        check(sample, create(root, sample.schema, write(root, sample.batches)))


@settings(max_examples=40)
@given(samples())
def test_deltalake_finds_every_row_through_arrow(sample: Sample) -> None:
    def check(sample: Sample, table: DeltaTable) -> None:
        column = pc.field("s", "x") if sample.nested else pc.field("x")
        # Arrow itself prunes wrongly when the filter says NaN.
        assume(not any(isinstance(value, float) and math.isnan(value) for value in sample.operands))
        literals = [pa.scalar(value, sample.kind.type) for value in sample.operands]
        if sample.operator == "between":
            filter_ = (column >= literals[0]) & (column <= literals[1])
        elif sample.operator == "is null":
            filter_ = column.is_null()
        elif sample.operator == "is not null":
            filter_ = column.is_valid()
        else:
            name = {"=": "equal", "<>": "not_equal", "<": "less", "<=": "less_equal"}
            name |= {">": "greater", ">=": "greater_equal"}
            filter_ = getattr(pc, name[sample.operator])(column, literals[0])
        found = table.to_pyarrow_dataset().to_table(["id"], filter_)["id"].to_pylist()
        assert sorted(found) == sample.rows.filter(filter_)["id"].to_pylist()

    on_table(check, sample)


@settings(max_examples=40)
@given(samples())
def test_datafusion_finds_every_row(sample: Sample) -> None:
    def check(sample: Sample, table: DeltaTable) -> None:
        where = sample.sql(sample.kind.datafusion, "s['x']" if sample.nested else "x")
        engine = QueryBuilder().register("t", table)
        # A projection reads everything and skips nothing.
        full = pa.table(engine.execute(f"SELECT id, {where} AS hit FROM t").read_all())
        found = pa.table(engine.execute(f"SELECT id FROM t WHERE {where}").read_all())["id"].to_pylist()
        assert sorted(full["id"].to_pylist()) == sample.rows["id"].to_pylist()
        assert sorted(found) == sorted(row["id"] for row in full.to_pylist() if row["hit"])

    on_table(check, sample)


@settings(max_examples=40)
@given(samples())
def test_duckdb_finds_every_row(duck: duckdb.DuckDBPyConnection, sample: Sample) -> None:
    def check(sample: Sample, table: DeltaTable) -> None:
        where = sample.sql(sample.kind.duckdb, "s.x" if sample.nested else "x")
        rows = (
            sample.rows
        )  # found by its name; a table of DuckDB's own, as a scan of Arrow pushes filters too
        duck.execute("CREATE OR REPLACE TEMP TABLE original AS SELECT * FROM rows")
        assert rows.num_rows
        query = "SELECT id FROM {} WHERE {} ORDER BY id"
        expected = duck.execute(query.format("original", where)).fetchall()
        place = f"delta_scan('{Path(table.table_uri.removeprefix('file://'))}')"
        assert duck.execute(query.format(place, where)).fetchall() == expected

    on_table(check, sample)


def test_nan_beside_a_number_is_found(duck: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    batch = pa.record_batch({"x": [float("nan"), 1.0], "s": [{"x": float("nan")}, {"x": 1.0}]})
    engine = QueryBuilder().register("t", create(tmp_path, batch.schema, write(tmp_path, [batch])))
    for column, inside in (("x", "x"), ("s.x", "s['x']")):
        found = duck.execute(f"SELECT x FROM delta_scan('{tmp_path}') WHERE {column} > 5").fetchall()
        assert len(found) == 1
        found = pa.table(engine.execute(f"SELECT x FROM t WHERE {inside} > 5").read_all())
        assert len(found) == 1


# A row is a file, so that every bound is an edge; columns ascend as Spark orders them: NaN is the greatest.
EDGES: dict[str, list[Any]] = {
    "long": [-(2**63), 2**63 - 1],
    "double": [float("-inf"), 0.1, float("inf"), None, None, float("nan")],
    "float": [0.10000000149011612],
    "decimal38": [Decimal("-0.0000000001"), Decimal("12345678901234567890123456.7890123456")],
    "string": ["", "\x00", "a" * 33, "a" * 32 + "b", "\U0010ffff" * 33],
    "date": [date(1, 1, 1), date(9999, 12, 31)],
    "timestamp": [
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
        datetime(2026, 1, 1, 0, 0, 0, 1001, UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999999, UTC),
    ],
    "boolean": [False, True],
}


def test_delta_spark_finds_every_row(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql import functions as f

    schema = pa.schema([(name, KINDS[name].type) for name in EDGES])
    files = [{name: dict(enumerate(EDGES[name])).get(row) for name in EDGES} for row in range(6)]
    batches = [pa.RecordBatch.from_pylist([row], schema) for row in files[:-1]]
    # NaN shares its file with a number, which Parquet would take for the greatest.
    batches.append(pa.RecordBatch.from_pylist([files[-1], {"double": 1.0}], schema))
    create(tmp_path, schema, write(tmp_path, batches))
    table = spark.read.format("delta").load(str(tmp_path))

    def matches(condition: Any) -> int:
        # Only a number comes back: pyspark's Python cannot hold all of these moments.
        return len(table.where(condition).select(f.lit(1)).collect())

    def literal(name: str, value: Any) -> Any:
        # As text: pyspark cannot pass a moment before the year 1583.
        text = name in ("date", "timestamp")
        return f.lit(str(value) if text else value).cast(table.schema[name].dataType)

    for row in files:
        # A file is skipped if one of its columns is thought not to match.
        wanted = f.lit(True)
        for name, value in row.items():
            column = f.col(name)
            wanted &= column.isNull() if value is None else column == literal(name, value)
        assert matches(wanted) == 1, row
    numbers = [float("-inf"), 0.1, 1.0, float("inf"), float("nan")]
    for place, number in enumerate(numbers):
        assert matches(f.col("double") > literal("double", number)) == len(numbers) - place - 1, number
