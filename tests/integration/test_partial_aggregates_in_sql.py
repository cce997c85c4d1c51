"""The table of partial aggregates on Spark: what its SQL keeps is what the loop over single values keeps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException

from holdfast.common import Row
from holdfast.datastream.aggregates import Latest, Variance
from holdfast.errors import FunctionError
from holdfast.runtime.aggregates import Aggregate, Aggregation
from holdfast.runtime.grouping import combine_partials
from holdfast.runtime.local_aggregation import Combination
from holdfast.runtime.windowing.known_aggregates import KnownAggregates
from holdfast.spark.internals.jvm import JVM_ERRORS
from holdfast.spark.partial_aggregation import plan_to_combine
from holdfast.types.arrow import row_reader
from tests.integration.test_combining import setting
from tests.kit.arrow_rows import arrow_rows
from tests.kit.partial_table import ROWS, Rows, aggregation_of, all_aggregates, looped, same
from tests.kit.properties import examples

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.slow]

SCHEMA = "key string, whole bigint, real double, text string"


def in_sql() -> dict[str, Aggregate]:
    """All aggregates whose partial ones Spark computes."""
    found = {
        name: one
        for name, one in all_aggregates().items()
        if all(partial.function.sql is not None for partial in aggregation_of(one).partials)
    }
    assert {"Count()", "Sum(whole)", "Sum(real)", "Min(real)", "Max(real)", "Max(whole)"} <= found.keys()
    return found


@pytest.fixture(autouse=True)
def checked_arithmetic(spark: Any) -> Iterator[None]:
    """The default since Spark 4.0: without it Spark does not combine sums."""
    with setting(spark, "spark.sql.ansi.enabled", "true"):
        yield


def frame_of(spark: Any, rows: Rows) -> Any:
    return spark.createDataFrame([tuple(row) for _, row in rows], SCHEMA).coalesce(1)


def by_spark(spark: Any, rows: Rows, wanted: Aggregation) -> dict[str, tuple[Any, ...]] | None:
    """None where a sum overflows."""
    combined = plan_to_combine(frame_of(spark, rows), Combination(wanted))
    assert combined is not None
    try:
        table = arrow_rows(combined.shape.data_frame(spark, combined.plan.execute()))
        batch = pa.RecordBatch.from_arrays([column.combine_chunks() for column in table.columns], schema=table.schema)
        columns = combined.columns.read(batch).columns
        schema = pa.schema(list(wanted.combined_type().arrow_type()))
        arrays = [column.cast(field.type) for column, field in zip(columns, schema, strict=True)]
        combined_rows = pa.RecordBatch.from_arrays(arrays, schema=schema)
        kept = combine_partials(wanted, combined_rows.columns[:1], combined_rows)
    except (FunctionError, PySparkException, *JVM_ERRORS) as error:
        assert "ARITHMETIC_OVERFLOW" in str(error) or "may pass 64 bits" in str(error)
        return None
    return {row[0]: tuple(row)[1:] for row in row_reader(wanted.combined_type())(kept)}


@hypothesis_settings(max_examples=examples(12), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS)
def test_sql_keeps_what_the_loop_keeps(spark: Any, rows: Rows) -> None:
    wanted = aggregation_of(*in_sql().values())
    try:
        loop = looped(wanted, rows)
    except FunctionError:
        loop = None
    found = by_spark(spark, rows, wanted)
    if loop is None:
        assert found is None
        return
    assert found is not None
    for place, partial in enumerate(wanted.partials):
        ours, spark_s = ({key: kept[place] for key, kept in some.items()} for some in (loop, found))
        assert same(partial, spark_s, ours, rows), partial.name


@hypothesis_settings(max_examples=examples(8), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(numbers=st.lists(st.none() | st.integers(-(1 << 30), 1 << 30), min_size=1, max_size=20))
def test_a_variance_is_that_of_spark(spark: Any, numbers: list[int | None]) -> None:
    frame = spark.createDataFrame([("a", number, None, None) for number in numbers], SCHEMA)
    (expected,) = frame.selectExpr("var_samp(whole)", "var_pop(whole)").collect()
    wanted = aggregation_of(Variance("whole"), Variance("whole", population=True))
    kept = looped(wanted, [(0, Row("a", number, None, None)) for number in numbers])["a"]
    for ours, spark_s in zip(KnownAggregates(wanted).get_result(kept), expected, strict=True):
        assert ours == (None if spark_s is None else pytest.approx(spark_s, rel=1e-9, abs=1e-6))


def test_what_spark_cannot_keep_in_one_column_is_left_to_arrow(spark: Any) -> None:
    frame = frame_of(spark, [])
    for one in (Variance("whole"), Latest("text")):
        assert plan_to_combine(frame, Combination(aggregation_of(one))) is None
