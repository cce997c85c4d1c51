"""Known aggregates of DataFrames: what Spark combines is what Arrow would have made of the same rows."""

from __future__ import annotations

import math
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pyspark.sql import Observation
from pyspark.sql import functions as F

from holdfast.common import Types
from holdfast.datastream import DataStream, RuntimeExecutionMode
from holdfast.datastream.aggregates import Average, Count, Max, Min, Sum
from holdfast.errors import JobExecutionError, ProgramError
from holdfast.runtime.aggregates import Aggregation
from holdfast.runtime.grouping import combine_partials, combine_rows
from holdfast.runtime.local_aggregation import Combination
from holdfast.spark.level_frames import PLAN_SETTINGS
from holdfast.spark.partial_aggregation import plan_to_combine
from holdfast.spark.session import _EPOCH_SETTINGS
from holdfast.types.arrow import schema_of
from holdfast.types.resolve import resolve
from tests.integration.combined_job import expected, write_input
from tests.integration.programs import environment, published
from tests.kit.arrow_rows import arrow_rows
from tests.kit.driver import DriverProgram
from tests.kit.faults import FaultPlan
from tests.kit.properties import examples

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.slow]

PROGRAM = Path(__file__).with_name("combined_job.py")
SCHEMA = "k string, n int, v bigint, x double, f float"
AGGREGATES = {
    "rows": Count(),
    "numbers": Count("v"),
    "small": Sum("n"),
    "total": Sum("v"),
    "least": Min("v"),
    "most": Max("v"),
    "mean": Average("x"),
    "least_x": Min("x"),
    "most_x": Max("x"),
    "most_f": Max("f"),
    "sum_f": Sum("f"),
}


@pytest.fixture(autouse=True)
def checked_arithmetic(spark: Any) -> Iterator[None]:
    """The default since Spark 4.0: without it Spark does not combine sums."""
    with setting(spark, "spark.sql.ansi.enabled", "true"):
        yield


def aggregation(frame: Any, keys: tuple[str, ...] = ("k",), **aggregates: Any) -> Aggregation:
    return Aggregation(resolve(frame.schema), keys, tuple((aggregates or AGGREGATES).items()))


def table_of(frame: Any, wanted: Aggregation) -> pa.RecordBatch:
    schema = schema_of(wanted.row_type)
    arrays = [column.combine_chunks().cast(field.type) for column, field in zip(arrow_rows(frame), schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def by_spark(frame: Any, wanted: Aggregation) -> dict[Any, tuple[Any, ...]]:
    """What Spark has combined, put together; every row must be counted."""
    combined = plan_to_combine(frame, Combination(wanted))
    assert combined is not None
    rows = combined.shape.data_frame(frame.sparkSession, combined.plan.execute())
    table = arrow_rows(rows)
    batch = pa.RecordBatch.from_arrays([column.combine_chunks() for column in table.columns], schema=table.schema)
    columns, counted, *_ = combined.columns.read(batch)
    assert counted == frame.count()
    schema = schema_of(wanted.combined_type())
    arrays = [column.cast(field.type) for column, field in zip(columns, schema, strict=True)]
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
    keys = [batch.column(key) for key in wanted.key_columns]
    return by_key(combine_partials(wanted, keys, batch), len(keys))


def by_key(rows: pa.RecordBatch, keys: int) -> dict[Any, tuple[Any, ...]]:
    values = zip(*(column.to_pylist() for column in rows.columns), strict=True)
    return {row[:keys]: tuple(map(comparable, row[keys:])) for row in values}


def comparable(value: Any) -> Any:
    """NaN is like NaN, and sums of floats like those of another order."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else pytest.approx(value, rel=1e-9, abs=1e-9)
    return value


@contextmanager
def setting(spark: Any, name: str, value: str) -> Iterator[None]:
    before = spark.conf.get(name)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.set(name, before)


numbers = st.none() | st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf]) | st.integers(-99, 99).map(float)


@hypothesis_settings(max_examples=examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "ü", "A", ""]),
            st.none() | st.integers(-(1 << 31), (1 << 31) - 1),
            st.none() | st.integers(-(1 << 56), 1 << 56),
            numbers,
            numbers,
        ),
        max_size=40,
    ),
    partitions=st.integers(1, 3),
    keys=st.sampled_from([("k",), ("k", "n")]),
)
def test_any_rows(spark: Any, rows: list[Any], partitions: int, keys: tuple[str, ...]) -> None:
    frame = spark.createDataFrame(rows, SCHEMA).repartition(partitions)
    wanted = aggregation(frame, keys)
    if keys == ("k", "n"):
        # A key of two columns, one of which is null in places.
        wanted = aggregation(frame, keys, total=Sum("v"), most=Max("x"))
    assert by_spark(frame, wanted) == by_key(combine_rows(wanted, table_of(frame, wanted)), len(keys))


def test_the_greatest_number_is_not_nan(spark: Any) -> None:
    """Where a key has another one, in the same partition."""
    rows = [("a", 1, 1, math.nan, math.nan), ("a", 2, 2, 2.5, -2.5), ("b", 3, 3, math.nan, math.nan)]
    frame = spark.createDataFrame(rows, SCHEMA).coalesce(1)
    wanted = aggregation(frame, most=Max("x"), most_f=Max("f"), least=Min("x"))
    assert by_spark(frame, wanted) == {("a",): (2.5, -2.5, 2.5), ("b",): ("nan", "nan", "nan")}


def test_only_the_first_half_of_an_aggregation_is_done(spark: Any) -> None:
    """Without an exchange each partition gives a row for each of its keys."""
    frame = spark.range(0, 400, 1, 4).selectExpr("id % 5 AS k", "id AS v")
    combined = plan_to_combine(frame, Combination(aggregation(frame, rows=Count(), total=Sum("v"))))
    assert combined is not None
    rows = combined.shape.data_frame(spark, combined.plan.execute())
    assert rows.rdd.getNumPartitions() == 4
    assert rows.count() == 20


def numbered(spark: Any, *columns: str) -> Any:
    return spark.range(0, 50, 1, 2).selectExpr(*columns)


FRAMES = {
    "a literal as the key": lambda spark: numbered(spark, "1 AS k", "id AS v"),
    "partitioned by the key": lambda spark: numbered(spark, "id % 3 AS k", "id AS v").repartition(3, "k"),
    "without nulls": lambda spark: numbered(spark, "id % 3 AS k", "nullif(id, 7) AS v").where("v IS NOT NULL"),
    "names with dots": lambda spark: numbered(spark, "id % 3 AS `k.x`", "id AS `sum(v)`"),
    "nothing": lambda spark: numbered(spark, "id AS k", "id AS v").where("k < 0"),
    "aggregated already": lambda spark: numbered(spark, "id % 7 AS k", "id AS v").groupBy("k").max("v"),
    "counted, and partitioned by the key": lambda spark: (
        numbered(spark, "id % 7 AS k", "id AS v").groupBy("k").count().repartition(2, "k")
    ),
    "cached": lambda spark: numbered(spark, "id % 7 AS k", "id AS v").cache(),
    "joined": lambda spark: numbered(spark, "id % 7 AS k", "id AS v").join(spark.range(3).toDF("k"), "k"),
    "a function in Python": lambda spark: numbered(spark, "id % 7 AS k", "id AS v").mapInArrow(same, "k long, v long"),
}


def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


@pytest.mark.parametrize("name", FRAMES)
def test_whatever_the_plan_of_the_rows_is(spark: Any, name: str) -> None:
    with setting(spark, "spark.sql.shuffle.partitions", "4"):
        check_combined(FRAMES[name](spark))


def check_combined(frame: Any) -> None:
    key, value = frame.columns
    wanted = aggregation(
        frame, (key,), rows=Count(), values=Count(value), total=Sum(value), mean=Average(value), least=Min(value)
    )
    assert by_spark(frame, wanted) == by_key(combine_rows(wanted, table_of(frame, wanted)), 1)
    rows = aggregation(frame, (key,), rows=Count())
    assert by_spark(frame, rows) == by_key(combine_rows(rows, table_of(frame, rows)), 1)
    both = aggregation(frame, (key, value), rows=Count())
    assert by_spark(frame, both) == by_key(combine_rows(both, table_of(frame, both)), 2)


def test_of_a_plan_that_spark_has_shortened_it_takes_no_part(spark: Any) -> None:
    """Its columns would not be those that are looked for: both sums are one."""
    frame = numbered(spark, "id % 3 AS k", "1 AS v", "1 AS w")
    assert plan_to_combine(frame, Combination(aggregation(frame, a=Sum("v"), b=Sum("w")))) is None


KEYS = {
    "boolean": "id % 2 = 0",
    "tinyint": "CAST(id % 3 AS TINYINT)",
    "smallint": "CAST(id % 3 AS SMALLINT)",
    "float": "CAST(element_at(array(-0.0D, 0.0D, double('NaN'), 1.5D), CAST(id % 4 AS INT) + 1) AS FLOAT)",
    "double": "element_at(array(-0.0D, 0.0D, double('NaN'), 1.5D), CAST(id % 4 AS INT) + 1)",
    "decimal": "CAST(id % 3 AS DECIMAL(10, 2))",
    "date": "date_add(DATE'2026-01-01', CAST(id % 3 AS INT))",
    "timestamp": "timestamp_millis(id % 3)",
    "timestamp without a zone": "CAST(timestamp_millis(id % 3) AS TIMESTAMP_NTZ)",
    "binary": "CAST(CAST(id % 3 AS STRING) AS BINARY)",
}


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_every_type_in_a_job(spark: Any, kind: str) -> None:
    """As without Spark's help, which it does not give where there is another consumer."""

    def totals(alone: bool) -> list[Any]:
        stream = environment().from_data_frame(
            numbered(spark, f"{KEYS[kind]} AS k", "CAST(id AS TINYINT) AS v", "CAST(id AS SMALLINT) AS w")
        )
        found = stream.key_by("k").aggregate(rows=Count(), total=Sum("v"), least=Min("w"), most=Max("v"))
        if not alone:
            stream.map(lambda row: 0, Types.LONG()).print()
        with found.execute_and_collect() as rows:
            return sorted(repr(tuple(row)) for row in rows)

    assert totals(alone=True) == totals(alone=False)
    assert len(totals(alone=True)) in (2, 3)


def test_a_data_frame_that_is_observed_is_refused(spark: Any) -> None:
    observed = spark.range(3).observe(Observation("seen"), F.count(F.lit(1)))
    with pytest.raises(ProgramError, match=r"'numbers' has observe\(\)"):
        environment().from_data_frame(observed, "numbers")


def test_without_key_columns_in_spark_s_results_arrow_combines(spark: Any) -> None:
    with setting(spark, "spark.sql.retainGroupColumns", "false"):
        frame = spark.range(0, 1000, 1, 3).selectExpr("id % 10 AS k", "id AS v")
        assert totals_of(environment().from_data_frame(frame)) == TOTALS
        # All of the aggregation is done where rows are partitioned by the key, and its results are without it too.
        assert totals_of(environment().from_data_frame(frame.repartition(3, "k"))) == TOTALS


def test_functions_in_front_of_an_aggregation_get_batches_by_their_own_settings(spark: Any) -> None:
    def batch_sizes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch([pa.array([0]), pa.array([batch.num_rows])], names=["k", "v"])

    frame = spark.range(0, 1000, 1, 1).mapInArrow(batch_sizes, "k LONG, v LONG")
    small = environment(**{"spark.sql.execution.arrow.maxRecordsPerBatch": "100"})
    found = small.from_data_frame(frame).key_by("k").aggregate(rows=Count(), most=Max("v"), total=Sum("v"))
    with found.execute_and_collect() as rows:
        assert [tuple(row) for row in rows] == [(0, 10, 100, 1000)]


def test_settings_are_put_back(spark: Any) -> None:
    before = {name: spark.conf.get(name, None) for name in PLAN_SETTINGS | _EPOCH_SETTINGS}
    totals_of(environment().set_parallelism(1).from_data_frame(spark.range(9).selectExpr("id AS k", "id AS v")))
    assert {name: spark.conf.get(name, None) for name in before} == before
    broken = environment(**{"spark.sql.shuffle.partitions": "many"})
    with pytest.raises(Exception, match="many"):
        totals_of(broken.from_data_frame(spark.range(9).selectExpr("id AS k", "id AS v")))
    assert {name: spark.conf.get(name, None) for name in before} == before


def test_spark_does_not_combine_what_it_would_get_wrong(spark: Any) -> None:
    frame = spark.range(9).selectExpr("id AS k", "id AS v", "CAST(id AS INT) AS n")
    with setting(spark, "spark.sql.ansi.enabled", "false"):
        # Its sums would overflow 64 bits; those of smaller numbers cannot.
        assert plan_to_combine(frame, Combination(aggregation(frame, total=Sum("v")))) is None
        assert plan_to_combine(frame, Combination(aggregation(frame, mean=Average("v")))) is None
        assert plan_to_combine(frame, Combination(aggregation(frame, total=Sum("n"), most=Max("v")))) is not None


@pytest.mark.spark(min="4.0", reason="collations begin with Spark 4.0")
def test_spark_does_not_combine_by_a_collation(spark: Any) -> None:
    """To this one 'a' and 'A' are one text."""
    collated = spark.range(4).selectExpr("CAST(id AS STRING) COLLATE UTF8_LCASE AS k", "CAST(id AS INT) AS n")
    assert plan_to_combine(collated, Combination(aggregation(collated, total=Sum("n")))) is None


def totals_of(stream: DataStream) -> dict[Any, tuple[Any, ...]]:
    """The last that each key gave."""
    totals = stream.key_by("k").aggregate(rows=Count(), total=Sum("v"), most=Max("v"))
    with totals.execute_and_collect() as rows:
        return {row[0]: tuple(row)[1:] for row in rows}


TOTALS = {key: (100, sum(range(key, 1000, 10)), 990 + key) for key in range(10)}


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("batch", [False, True], ids=["streaming", "batch"])
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_totals_of_a_bounded_data_frame(spark: Any, parallelism: int, batch: bool, ansi: str) -> None:
    """Combined by Spark, or where Spark's sums could overflow, by Arrow in its tasks."""
    frame = spark.range(0, 1000, 1, 3).selectExpr("id % 10 AS k", "id AS v")
    env = environment().set_parallelism(parallelism)
    if batch:
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    with setting(spark, "spark.sql.ansi.enabled", ansi):
        assert totals_of(env.from_data_frame(frame)) == TOTALS


def test_rows_that_others_want_too_are_read_once(spark: Any, tmp_path: Path) -> None:
    read = spark.sparkContext.accumulator(0)

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            read.add(batch.num_rows)
            yield batch

    frame = spark.range(0, 1000, 1, 3).selectExpr("id % 10 AS k", "id AS v").mapInArrow(count, "k long, v long")
    env = environment()
    stream = env.from_data_frame(frame, "numbers")
    totals = stream.key_by("k").aggregate(rows=Count(), total=Sum("v"), most=Max("v"))
    from_rows = stream.map(lambda row: (row.k, -1, row.v, 0), Types.TUPLE([Types.LONG()] * 4))
    both = totals.map(lambda row: tuple(row), Types.TUPLE([Types.LONG()] * 4)).union(from_rows)
    with both.execute_and_collect() as rows:
        found = list(rows)
    assert {row[0]: row[1:] for row in found if row[1] >= 0} == TOTALS
    assert sorted(row[2] for row in found if row[1] < 0) == list(range(1000))
    assert read.value == 1000


def test_the_rows_of_an_epoch_are_those_that_were_read(spark: Any) -> None:
    """Not the few that stand for them."""
    env = environment()
    totals = env.from_data_frame(spark.range(1000).selectExpr("id % 10 AS k", "id AS v")).key_by("k")
    totals.aggregate(most=Max("v")).print()
    history = env.execute_async("totals").get_job_execution_result().result().get_history()
    assert sum(epoch.rows for epoch in history.epochs) == 1000


def test_sums_that_pass_64_bits_stop_the_job(spark: Any) -> None:
    frame = spark.range(4).selectExpr("1 AS k", f"{(1 << 63) - 1} AS v").repartition(1)
    with pytest.raises(JobExecutionError, match="A sum of v may pass 64 bits"):
        totals_of(environment().from_data_frame(frame))


def test_an_overflow_of_the_program_s_own_is_not_taken_for_one_of_a_sum(spark: Any) -> None:
    frame = spark.range(4).selectExpr("1 AS k", f"id * {(1 << 63) - 1} AS v")
    with pytest.raises(JobExecutionError, match="try_multiply"):
        totals_of(environment().from_data_frame(frame))


def test_rows_are_combined_in_pieces_where_there_are_many(spark: Any) -> None:
    """By Arrow, with columns beside that nobody needs."""
    frame = spark.range(0, 600_000, 1, 1).selectExpr("id AS unused", "id % 10 AS k", "id AS v", "'text' AS more")
    with setting(spark, "spark.sql.ansi.enabled", "false"):
        totals = totals_of(environment().from_data_frame(frame))
    assert totals == {key: (60_000, sum(range(key, 600_000, 10)), 599_990 + key) for key in range(10)}


def test_a_null_key_stops_the_job(spark: Any) -> None:
    frame = spark.range(4).selectExpr("nullif(id, 2) AS k", "id AS v")
    with pytest.raises(JobExecutionError, match="null"):
        totals_of(environment().from_data_frame(frame))


@pytest.mark.parametrize("streams", [1, 2])
def test_totals_of_streams(spark: Any, tmp_path: Path, streams: int) -> None:
    """Spark combines one stream; the rows of several come together, and are told apart and combined in its tasks."""
    write_input(tmp_path / "in", 3)
    env = environment(**{"holdfast.stream.available-now": "true"})
    frames = [
        spark.readStream.schema("k long, v long").option("maxFilesPerTrigger", 1).json(str(tmp_path / "in"))
        for _ in range(streams)
    ]
    output = Types.ROW_NAMED(["stream", "k", "rows", "total"], [Types.LONG()] * 4)

    def results(number: int) -> DataStream:
        stream = env.from_data_frame(frames[number], f"stream {number}").key_by("k")
        totals = stream.aggregate(rows=Count(), total=Sum("v"))
        return totals.map(lambda row: (number, *row), output)

    first, *others = map(results, range(streams))
    with first.union(*others).execute_and_collect() if others else first.execute_and_collect() as rows:
        found = sorted(tuple(row) for row in rows)
    assert found == sorted((n, k, count, total) for n in range(streams) for k, count, total, *_ in expected(3))


def run_over_kills(program: Path, directory: Path) -> None:
    """A worker dies with what counts nowhere yet, the driver before it has accepted an epoch, and another goes on."""
    faults = FaultPlan(directory / "faults")
    faults.add("task.after-commit", "kill", epoch=3, level=1)
    faults.add("driver.epoch-collected", "kill", epoch=6)
    codes = []
    for number in range(2):
        with DriverProgram(program, [str(directory)], directory / f"log-{number}", faults.environment) as driver:
            codes.append(driver.wait(150))
    assert codes == [-signal.SIGKILL, 0], driver.output[-3000:]
    assert not faults.not_reached()


def test_totals_over_a_killed_worker_and_a_killed_driver(tmp_path: Path) -> None:
    files = 8
    write_input(tmp_path / "in", files)
    run_over_kills(PROGRAM, tmp_path)
    found = sorted((k, rows, total, most, mean) for k, rows, total, most, mean in published(tmp_path / "out"))
    assert found == expected(files)
