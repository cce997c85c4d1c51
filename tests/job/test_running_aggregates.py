"""Running sums, minima and maxima by column: what the loop over rows gives, row by row."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from holdfast.common import Row, Types
from holdfast.errors import JobExecutionError, ProgramError
from holdfast.runtime.field_reducers import FieldReducer
from holdfast.runtime.keyed import ReduceOperator
from holdfast.runtime.row_path import RowPath, RowsBy
from holdfast.runtime.running_aggregates import (
    RunningOperator,
    Segments,
    reduce_operator,
    running_extremes,
    running_sums,
)
from holdfast.testing.in_process import InProcessEngine
from holdfast.types.resolve import resolve
from holdfast.types.typeinfo import TypeInformation
from tests.integration.programs import environment
from tests.job.counting import settings
from tests.kit.properties import examples

ROW = Types.ROW_NAMED(["shop", "price", "note"], [Types.STRING(), Types.INT(), Types.STRING()])
BY_COLUMN, ONE_BY_ONE = RowPath(RowsBy.COLUMN, least_rows=1), RowPath(RowsBy.ONE)


@dataclass
class Bid:
    price: int


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-9, 9)), min_size=1, max_size=50))
def test_running_values_of_segments(pairs: list[tuple[int, int]]) -> None:
    codes, values = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
    _, codes = np.unique(codes, return_inverse=True)
    segments = Segments.of(codes)
    ordered = values[segments.order]
    grouped = groupby(zip(segments.key, ordered, strict=True), lambda row: row[0])
    by_key = [[int(value) for _, value in rows] for _, rows in grouped]
    for compute, one in (
        (running_sums(ordered, segments), sum),
        (running_extremes(ordered, segments, np.minimum), min),
        (running_extremes(ordered, segments, np.maximum), max),
    ):
        assert compute.tolist() == [one(rows[: n + 1]) for rows in by_key for n in range(len(rows))]


def results(
    tmp_path: Path,
    rows: list[Row],
    kind: str,
    keyed_by: Any,
    path: RowPath,
    epoch: int,
) -> list[Row]:
    given_settings = settings(tmp_path, **{"holdfast.epoch.max-rows": str(epoch), "restart-strategy.type": "none"})
    env = environment(**given_settings).set_parallelism(2)
    env.row_path = path
    stream = env.from_collection(rows, ROW)
    with getattr(stream.key_by(keyed_by, Types.STRING()), kind)("price").execute_and_collect() as collected:
        return list(collected)


ROWS = st.lists(
    st.builds(Row, st.sampled_from(["a", "b", "ü"]), st.integers(-1000, 1000), st.text(max_size=3) | st.none()),
    min_size=1,
    max_size=40,
)


@hypothesis_settings(max_examples=examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=ROWS,
    kind=st.sampled_from(["sum", "min", "max"]),
    keyed_by=st.sampled_from(["shop", lambda row: row[0]]),
    epoch=st.integers(1, 40),
)
def test_columns_give_what_the_loop_gives(
    in_process: InProcessEngine,
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[Row],
    kind: str,
    keyed_by: Any,
    epoch: int,
) -> None:
    looped, columns = (
        results(tmp_path_factory.mktemp("job"), rows, kind, keyed_by, path, epoch) for path in (ONE_BY_ONE, BY_COLUMN)
    )
    assert columns == looped


def test_a_sum_that_leaves_its_type_is_refused_as_in_the_loop(
    in_process: InProcessEngine, tmp_path: Path
) -> None:
    rows = [Row("a", 1 << 30, None), Row("a", 1 << 30, None)]
    with pytest.raises(JobExecutionError, match="is not of the declared type"):
        results(tmp_path, rows, "sum", "shop", BY_COLUMN, 10)


def test_null_is_the_same_error_as_in_the_loop(
    in_process: InProcessEngine, tmp_path: Path
) -> None:
    rows = [Row("a", 1, None), Row("a", None, None)]
    with pytest.raises(JobExecutionError, match="TypeError"):
        results(tmp_path, rows, "sum", "shop", BY_COLUMN, 10)


@pytest.mark.parametrize(
    ("kind", "by_column"), [("sum", True), ("min", True), ("max", True), ("min_by", False), ("max_by", False)]
)
@pytest.mark.parametrize("told", [None, *RowsBy])
def test_by_column_where_that_is_possible_unless_it_is_told(kind: str, by_column: bool, told: RowsBy | None) -> None:
    env = environment()
    env.row_path = RowPath(told)
    keyed = env.from_collection([Row("a", 1, "x")], ROW).key_by("shop")
    ways = [RowsBy.COLUMN, RowsBy.ONE] if by_column else [RowsBy.ONE]
    if told is not None and told not in ways:
        with pytest.raises(ProgramError, match=f"told to go into reduce.. {told.value}.*can go {ways[0].value}"):
            getattr(keyed, kind)("price")
        return
    node = getattr(keyed, kind)("price")._node
    assert isinstance(node.body, FieldReducer)
    # A RunningOperator comes with its least number of rows.
    assert getattr(node.factory, "func", node.factory) is operator_of(told or ways[0])


def operator_of(way: RowsBy) -> type[ReduceOperator]:
    return RunningOperator if way is RowsBy.COLUMN else ReduceOperator


@pytest.mark.parametrize(
    ("function", "row_type", "key_type"),
    [
        (max, ROW, Types.STRING()),
        (FieldReducer("Max", 0), Types.TUPLE([Types.DOUBLE()]), Types.STRING()),
        (FieldReducer("Max", 0), Types.TUPLE([Types.LONG()]), Types.DOUBLE()),
        (FieldReducer("Max", 0), resolve(Bid), Types.STRING()),
    ],
    ids=["a function", "a field of reals", "a key of reals", "rows that are instances"],
)
def test_what_goes_one_by_one(function: Any, row_type: TypeInformation, key_type: TypeInformation) -> None:
    assert reduce_operator(function, row_type, key_type, RowPath()) is ReduceOperator
