"""How many rows of a DataFrame Python gets at once."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession as Spark

from holdfast.spark.internals.kept_plans import LARGE_BATCHES
from holdfast.spark.internals.planned_rows import PlannedRows, RowShape, with_settings
from holdfast.spark.internals.repeated_plan import RepeatedPlan
from holdfast.spark.session import changed_settings

pytestmark = pytest.mark.slow

ROWS = 25_000
SIZES = RowShape('{"type":"struct","fields":[{"name":"size","type":"binary","nullable":true,"metadata":{}}]}')


def sizes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.record_batch([pa.array([str(batch.num_rows).encode()], pa.binary())], names=["size"])


@pytest.mark.parametrize("large", [True, False])
def test_a_limit_in_bytes_holds_where_it_is_wanted(spark: Spark, large: bool) -> None:
    with changed_settings(spark, {"spark.sql.execution.arrow.maxBytesPerBatch": "80000b"}):
        told = spark.range(0, ROWS, 1, 1).mapInArrow(sizes, "size binary")
        rdd = told._jdf.queryExecution().executedPlan().execute()
        # As epochs run: in a query of Spark's own its settings would hold for all tasks.
        frame = SIZES.empty(spark)
        plan = RepeatedPlan(spark, frame, frame._jdf.queryExecution().executedPlan())
        counted = [int(size) for size in plan.run([with_settings(spark, rdd, LARGE_BATCHES) if large else rdd])]
    assert sum(counted) == ROWS
    assert (counted == [10_000, 10_000, 5_000]) == large
    assert large or max(counted) < 10_000


@pytest.mark.parametrize(
    ("columns", "few"),
    [
        ("a LONG, b DOUBLE, c TIMESTAMP, d DECIMAL(38, 2), e BOOLEAN", True),
        ("a LONG, b STRING", False),
        ("a LONG, b BINARY", False),
        ("a LONG, b STRUCT<c: LONG>", False),
        ("a LONG, b ARRAY<LONG>", False),
        (", ".join(f"c{number} LONG" for number in range(100)), True),
        (", ".join(f"c{number} LONG" for number in range(101)), False),
    ],
)
def test_rows_whose_size_is_known(spark: Spark, columns: str, few: bool) -> None:
    frame = spark.createDataFrame([], columns)
    assert PlannedRows.of(frame).shape.few_numbers == few
