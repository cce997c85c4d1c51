"""The rows of ``execute_and_collect`` are in the order in which the subtasks before it gave them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Row, RowKind, Types, WatermarkStrategy
from holdfast.datastream import DataStream
from holdfast.datastream.connectors import NumberSequenceSource
from holdfast.runtime.epoch import EpochSpec
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import environment
from tests.job.counting import settings

NUMBERS = list(range(40))


@pytest.mark.parametrize("parallelism", [1, 2, 5])
@pytest.mark.parametrize("declared", [None, Types.LONG()])
@pytest.mark.parametrize(
    "ways",
    [
        lambda s: s,
        lambda s: s.map(lambda n: n).set_parallelism(1),
        lambda s: s.global_(),
        lambda s: s.broadcast(),
        lambda s: s.map(lambda n: n).force_non_parallel().filter(lambda n: True).set_parallelism(1),
    ],
)
def test_the_order_of_one_subtask_is_kept_over_a_failure(
    in_process: InProcessEngine,
    tmp_path: Path,
    ways: Callable[[DataStream], DataStream],
    declared: Any,
    parallelism: int,
) -> None:
    def fail(spec: EpochSpec) -> None:
        if (spec.attempt, spec.epoch) == (1, 3):
            raise OSError("the executor is gone")

    in_process.after_epoch = fail
    env = environment(**settings(tmp_path, **{"holdfast.epoch.max-rows": "7"})).set_parallelism(parallelism)
    assert list(ways(env.from_collection(NUMBERS, declared)).execute_and_collect()) == NUMBERS
    assert {attempt for attempt, _ in in_process.epochs} == {1, 2}


@pytest.mark.parametrize("parallelism", [2, 5])
def test_the_order_of_each_of_several_subtasks_is_kept(
    in_process: InProcessEngine, tmp_path: Path, parallelism: int
) -> None:
    """Each reads a range of its own; nothing is exchanged on the way to the program."""
    env = environment(**settings(tmp_path, **{"holdfast.epoch.max-rows": "10"})).set_parallelism(parallelism)
    numbers = env.from_source(NumberSequenceSource(0, 39), WatermarkStrategy.no_watermarks(), "numbers")
    rows = list(numbers.execute_and_collect())
    assert sorted(rows) == NUMBERS
    for subtask in range(parallelism):
        own = [number for number in rows if number * parallelism // len(NUMBERS) == subtask]
        assert own == sorted(own)


def test_rows_are_collected_in_their_declared_form(in_process: InProcessEngine, tmp_path: Path) -> None:
    env = environment(**settings(tmp_path)).set_parallelism(2)
    named = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.LONG()])
    given = [("ann", 1), Row(age=2, name="bob"), Row.of_kind(RowKind.DELETE, "cleo", 3)]
    rows = list(env.from_collection(given).map(lambda row: row, named).execute_and_collect())
    assert sorted(rows, key=lambda row: row.age) == [
        Row(name="ann", age=1),
        Row(name="bob", age=2),
        Row.of_kind(RowKind.DELETE, name="cleo", age=3),
    ]
