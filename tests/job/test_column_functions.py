"""Functions of whole columns: they give what a function of single rows gives, over failures, restores and rescaling."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from holdfast.common import Row, Types
from holdfast.datastream import DataStream, KeyedBatchFunction, RuntimeContext, RuntimeExecutionMode
from holdfast.datastream.aggregates import Average, Count, Max, Min, Sum
from holdfast.datastream.state import ValueStateDescriptor
from holdfast.errors import JobExecutionError, ProgramError
from holdfast.runtime.epoch import EpochSpec
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import environment
from tests.job.counting import settings
from tests.kit.properties import examples

ROW = Types.ROW_NAMED(["shop", "price", "weight"], [Types.STRING(), Types.LONG(), Types.DOUBLE()])
ROWS = [Row(f"shop-{n % 7}", n * 37 % 101 - 50, None if n % 11 == 0 else n / 8) for n in range(300)]
RUNNING = Types.ROW_NAMED(["shop", "total"], [Types.STRING(), Types.LONG()])


class RunningTotals(KeyedBatchFunction):
    """The total of each shop after each batch."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.totals = runtime_context.get_state(ValueStateDescriptor("totals", Types.LONG()))

    def process_batch(self, keys: pa.Array, batch: pa.RecordBatch, ctx: Any) -> pa.RecordBatch:
        table = pa.table({"shop": keys, "price": batch.column("price")})
        sums = table.group_by("shop").aggregate([("price", "sum")])
        shops = sums.column("shop").combine_chunks()
        before = pc.fill_null(self.totals.get_many(shops), 0)
        totals = pc.add(before, sums.column("price_sum").combine_chunks())
        self.totals.put_many(shops, totals)
        return pa.record_batch({"shop": shops, "total": totals})


def source(tmp_path: Path, rows: list[Row], parallelism: int = 2, **changes: str) -> DataStream:
    given = settings(tmp_path, **{"holdfast.epoch.max-rows": str(40 * parallelism), **changes})
    return environment(**given).set_parallelism(parallelism).from_collection(rows, ROW)


def collected(stream: DataStream) -> list[Any]:
    with stream.execute_and_collect() as rows:
        return list(rows)


def last_of_each(rows: list[Any]) -> dict[Any, tuple[Any, ...]]:
    return {row[0]: tuple(row)[1:] for row in rows}


def expected(rows: list[Row]) -> dict[str, tuple[Any, ...]]:
    by_shop: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_shop[row[0]].append(row)
    return {shop: aggregates_of(some) for shop, some in by_shop.items()}


def aggregates_of(rows: list[Row]) -> tuple[Any, ...]:
    prices = [row[1] for row in rows]
    weights = [row[2] for row in rows if row[2] is not None]
    mean = sum(weights) / len(weights) if weights else None
    least = min(weights) if weights else None
    return len(rows), sum(prices), min(prices), max(prices), len(weights), least, mean


def aggregated(stream: DataStream) -> DataStream:
    return stream.key_by("shop").aggregate(
        rows=Count(),
        total=Sum("price"),
        least=Min("price"),
        most=Max("price"),
        weighed=Count("weight"),
        lightest=Min("weight"),
        mean=Average("weight"),
    )


def fail_once(spec: EpochSpec) -> None:
    if (spec.attempt, spec.epoch) == (1, 2):
        raise OSError("the executor is gone")


@pytest.mark.parametrize("backend", ["heap", "lmdb", "rocksdb"])
@pytest.mark.parametrize("keyed_by", ["shop", lambda row: row[0]], ids=["column", "function"])
def test_a_batch_function_keeps_state_in_bulk(
    in_process: InProcessEngine, tmp_path: Path, backend: str, keyed_by: Any
) -> None:
    in_process.after_epoch = fail_once
    stream = source(tmp_path, ROWS, **{"state.backend.type": backend})
    totals = collected(stream.key_by(keyed_by, Types.STRING()).process(RunningTotals(), RUNNING))
    assert last_of_each(totals) == {shop: (values[1],) for shop, values in expected(ROWS).items()}
    assert len(in_process.epochs) > 3
    assert len({attempt for attempt, _ in in_process.epochs}) == 2


@pytest.mark.parametrize("parallelism", [1, 2, 5])
@pytest.mark.parametrize("backend", ["heap", "lmdb", "rocksdb"])
def test_known_aggregates_are_those_of_the_rows(
    in_process: InProcessEngine, tmp_path: Path, backend: str, parallelism: int
) -> None:
    in_process.after_epoch = fail_once
    rows = collected(aggregated(source(tmp_path, ROWS, parallelism, **{"state.backend.type": backend})))
    assert last_of_each(rows) == expected(ROWS)
    # Once for each key and epoch, not for each row.
    assert len(rows) < len(ROWS) / 2
    # The count of a key never goes back, whatever was read again.
    for shop in expected(ROWS):
        counts = [row[1] for row in rows if row[0] == shop]
        assert counts == sorted(set(counts))


@hypothesis_settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.builds(
            Row,
            st.sampled_from(["a", "b", "ü", ""]),
            st.integers(-(1 << 40), 1 << 40),
            st.none() | st.integers(-1000, 1000).map(lambda n: n / 4),
        ),
        max_size=60,
    ),
    batch=st.booleans(),
)
def test_any_rows(
    in_process: InProcessEngine, tmp_path_factory: pytest.TempPathFactory, rows: list[Row], batch: bool
) -> None:
    stream = source(tmp_path_factory.mktemp("job"), rows, **{"holdfast.epoch.max-rows": "7"})
    if batch:
        stream.get_execution_environment().set_runtime_mode(RuntimeExecutionMode.BATCH)
    results = collected(aggregated(stream))
    assert last_of_each(results) == expected(rows)
    if batch:
        assert len(results) == len(expected(rows))


def test_keys_of_several_columns_and_a_stream_after_a_function(in_process: InProcessEngine, tmp_path: Path) -> None:
    pairs = Types.ROW_NAMED(["shop", "sign", "price"], [Types.STRING(), Types.BOOLEAN(), Types.LONG()])
    stream = source(tmp_path, ROWS).map(lambda row: Row(row[0], row[1] < 0, row[1]), pairs)
    rows = collected(stream.key_by(["shop", "sign"]).aggregate(n=Count(), total=Sum("price")))
    expected: dict[tuple[str, bool], list[int]] = defaultdict(lambda: [0, 0])
    for shop, price, _ in map(tuple, ROWS):
        expected[shop, price < 0][0] += 1
        expected[shop, price < 0][1] += price
    assert {(row[0], row[1]): [row[2], row[3]] for row in rows} == expected


def test_a_sum_does_not_go_around(in_process: InProcessEngine, tmp_path: Path) -> None:
    rows = [Row("a", (1 << 62) + n, None) for n in range(3)]
    stream = source(tmp_path, rows, **{"restart-strategy.type": "none"}).key_by("shop").aggregate(total=Sum("price"))
    with pytest.raises(JobExecutionError, match="may pass 64 bits"):
        collected(stream)


class Broken(KeyedBatchFunction):
    def __init__(self, gives: Any) -> None:
        self.gives = gives

    def process_batch(self, keys: pa.Array, batch: pa.RecordBatch, ctx: Any) -> Any:
        return self.gives(keys, batch)


@pytest.mark.parametrize(
    ("gives", "message"),
    [
        (lambda keys, batch: 7, "gave int; expected a pyarrow.RecordBatch"),
        (lambda keys, batch: batch, "gave the columns shop, price, weight; the output type"),
        (lambda keys, batch: pa.record_batch({"shop": keys, "total": keys}), "not of the output type"),
        (lambda keys, batch: keys.nothing(), "one of 40 rows of a batch"),
    ],
)
def test_what_a_batch_function_must_give(in_process: InProcessEngine, tmp_path: Path, gives: Any, message: str) -> None:
    stream = source(tmp_path, ROWS, 1, **{"restart-strategy.type": "none"}).key_by("shop")
    with pytest.raises(JobExecutionError, match=message):
        collected(stream.process(Broken(gives), RUNNING))


class Several(KeyedBatchFunction):
    def process_batch(self, keys: pa.Array, batch: pa.RecordBatch, ctx: Any) -> Iterator[Any]:
        assert ctx.timestamps() is None
        rows = pa.table({"total": batch.column("price"), "shop": keys})
        yield rows.slice(0, 1)
        yield rows.slice(1).to_batches()[0]


def test_a_batch_function_may_give_tables_and_several_batches(in_process: InProcessEngine, tmp_path: Path) -> None:
    rows = collected(source(tmp_path, ROWS, 1).key_by("shop").process(Several(), RUNNING))
    assert sorted(map(tuple, rows)) == sorted((row[0], row[1]) for row in ROWS)


def test_what_functions_of_columns_ask_of_a_stream(in_process: InProcessEngine, tmp_path: Path) -> None:
    env = environment(**settings(tmp_path))
    untyped = env.from_collection([("a", 1)])
    typed = env.from_collection(ROWS, ROW)
    with pytest.raises(ProgramError, match="that of the rows"):
        untyped.key_by(lambda row: row[0], Types.STRING()).process(RunningTotals(), RUNNING)
    with pytest.raises(ProgramError, match="that of the keys"):
        typed.key_by(lambda row: row[0]).process(RunningTotals(), RUNNING)
    with pytest.raises(ProgramError, match="that of the results"):
        typed.key_by("shop").process(RunningTotals())
    with pytest.raises(ProgramError, match="needs the key as columns"):
        typed.key_by(lambda row: row[0]).aggregate(n=Count())
    with pytest.raises(ProgramError, match="by name"):
        typed.key_by("shop").aggregate()
    with pytest.raises(ProgramError, match="no such field; they have shop, price, weight"):
        typed.key_by("shop").aggregate(n=Sum("prize"))
    with pytest.raises(ProgramError, match="is for numbers"):
        typed.key_by("price").aggregate(n=Max("shop"))
    with pytest.raises(ProgramError, match="expected Count"):
        typed.key_by("shop").aggregate(n="sum")  # type: ignore[arg-type]  # what the test is about
    with pytest.raises(ProgramError, match="a column of the key"):
        typed.key_by("shop").aggregate(shop=Count())
    nested = env.from_collection([Row([1], 2)], Types.ROW_NAMED(["k", "v"], [Types.LIST(Types.LONG()), Types.LONG()]))
    with pytest.raises(ProgramError, match="the column 'k' of the key is LIST"):
        nested.key_by("k").aggregate(n=Count())
