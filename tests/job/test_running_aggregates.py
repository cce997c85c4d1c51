"""Running sums, minima and maxima by column: what the loop over rows gives, row by row."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from holdfast.common import Row, Types
from holdfast.datastream.keyed_aggregations import FieldReducer
from holdfast.errors import JobExecutionError
from holdfast.runtime import running_aggregates
from holdfast.runtime.running_aggregates import RunningOperator, Segments, running_extremes, running_sums
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import environment
from tests.job.counting import settings
from tests.kit.properties import examples

ROW = Types.ROW_NAMED(["shop", "price", "note"], [Types.STRING(), Types.INT(), Types.STRING()])


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
    monkeypatch: pytest.MonkeyPatch,
    by_column: bool,
    epoch: int,
) -> list[Row]:
    monkeypatch.setattr(running_aggregates, "LEAST_ROWS", 1 if by_column else 1 << 60)
    given_settings = settings(tmp_path, **{"holdfast.epoch.max-rows": str(epoch), "restart-strategy.type": "none"})
    stream = environment(**given_settings).set_parallelism(2).from_collection(rows, ROW)
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
    monkeypatch: pytest.MonkeyPatch,
    rows: list[Row],
    kind: str,
    keyed_by: Any,
    epoch: int,
) -> None:
    looped, columns = (
        results(tmp_path_factory.mktemp("job"), rows, kind, keyed_by, monkeypatch, by_column, epoch)
        for by_column in (False, True)
    )
    assert columns == looped


def test_a_sum_that_leaves_its_type_is_refused_as_in_the_loop(
    in_process: InProcessEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [Row("a", 1 << 30, None), Row("a", 1 << 30, None)]
    with pytest.raises(JobExecutionError, match="is not of the declared type"):
        results(tmp_path, rows, "sum", "shop", monkeypatch, True, 10)


def test_null_is_the_same_error_as_in_the_loop(
    in_process: InProcessEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [Row("a", 1, None), Row("a", None, None)]
    with pytest.raises(JobExecutionError, match="TypeError"):
        results(tmp_path, rows, "sum", "shop", monkeypatch, True, 10)


@pytest.mark.parametrize(
    ("kind", "by_column"), [("sum", True), ("min", True), ("max", True), ("min_by", False), ("max_by", False)]
)
def test_which_aggregates_work_by_column(kind: str, by_column: bool) -> None:
    stream = environment().from_collection([Row("a", 1, "x")], ROW).key_by("shop")
    node = getattr(stream, kind)("price")._node
    assert isinstance(node.body, FieldReducer)
    assert (node.factory is RunningOperator) == by_column
