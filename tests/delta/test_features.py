"""Which tables are refused, on real tables made by delta-spark and deltalake."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from rivermouth.delta.table import TableSpec, open_table
from rivermouth.errors import UnsupportedFeature

SCHEMA = pa.schema([pa.field("n", pa.int64())])


def spec(path, **more) -> TableSpec:
    return TableSpec(str(path), SCHEMA, **more)


@pytest.mark.parametrize(
    ("columns", "properties", "feature"),
    [
        ("n BIGINT", "'delta.columnMapping.mode' = 'name'", "columnMapping"),
        ("n BIGINT", "'delta.enableRowTracking' = 'true'", "rowTracking"),
        ("n BIGINT", "'delta.enableInCommitTimestamps' = 'true'", "inCommitTimestamp"),
        ("n BIGINT", "'delta.constraints.positive' = 'n > 0'", "checkConstraints"),
        (
            "n BIGINT",
            "'delta.setTransactionRetentionDuration' = 'interval 1 days'",
            "setTransactionRetention",
        ),
    ],
)
def test_a_table_that_appends_would_break_is_refused_by_name(spark, tmp_path, columns, properties, feature):
    path = tmp_path / "t"
    spark.sql(f"CREATE TABLE delta.`{path}` ({columns}) USING delta TBLPROPERTIES ({properties})")
    with pytest.raises(UnsupportedFeature, match=feature):
        open_table(spec(path), create=False)


def test_a_generated_column_is_refused(spark, tmp_path):
    path = tmp_path / "t"
    spark.sql(f"CREATE TABLE delta.`{path}` (n BIGINT GENERATED ALWAYS AS (CAST(1 AS BIGINT))) USING delta")
    with pytest.raises(UnsupportedFeature, match="generatedColumns"):
        open_table(spec(path), create=False)


def test_deletion_vectors_and_change_data_are_fine_for_appends(spark, tmp_path):
    path = tmp_path / "t"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (n BIGINT) USING delta TBLPROPERTIES "
        "('delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = 'true')"
    )
    open_table(spec(path), create=False)
    with pytest.raises(UnsupportedFeature, match="deletionVectors"):
        open_table(spec(path, overwrite=True), create=False)


def test_an_append_only_table_cannot_be_overwritten(tmp_path):
    DeltaTable.create(str(tmp_path), schema=SCHEMA, configuration={"delta.appendOnly": "true"})
    open_table(spec(tmp_path), create=False)
    with pytest.raises(UnsupportedFeature, match="appendOnly"):
        open_table(spec(tmp_path, overwrite=True), create=False)
