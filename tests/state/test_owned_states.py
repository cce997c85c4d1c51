"""State whose values its operator shows to nobody, and namespaces that come and go, as windows need both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holdfast.errors import StateTypeError
from holdfast.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from holdfast.types.typeinfo import Types
from tests.state.backend_under_test import Subtask
from tests.state.stores import BACKENDS

WINDOW = Types.TUPLE([Types.LONG(), Types.LONG()])


@pytest.fixture(params=BACKENDS)
def task(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Subtask]:
    subtask = Subtask(request.param, tmp_path)
    yield subtask
    subtask.close()


class Sum:
    """A sum whose accumulator is a list, which it changes, and its result."""

    def create_accumulator(self) -> list[int]:
        return [0]

    def add(self, value: int, accumulator: list[int]) -> list[int]:
        accumulator[0] += value
        return accumulator

    def get_result(self, accumulator: list[int]) -> list[int]:
        return accumulator

    def merge(self, acc_a: list[int], acc_b: list[int]) -> list[int]:
        return [acc_a[0] + acc_b[0]]


def test_an_accumulator_stays_the_same_object_until_it_is_given_away(task: Subtask) -> None:
    state = task.backend.state(AggregatingStateDescriptor("sum", Sum()), WINDOW, owned=True)
    task.at(1)
    state.set_current_namespace((0, 10))
    state.add(1)
    first = state.get()
    state.add(2)
    assert state.get() is first == [3]
    task.next_epoch(cached=True)
    task.at(1)
    assert state.get() is first, "nothing is decoded while the worker goes on"
    state.keep_copy()
    state.add(4)
    assert (first, state.get()) == ([3], [7])
    task.next_epoch()
    state = task.backend.state(AggregatingStateDescriptor("sum", Sum()), WINDOW, owned=True)
    task.at(1)
    state.set_current_namespace((0, 10))
    assert state.get() == [7]


class Vectors(Sum):
    """A sum whose accumulator has no truth value when it is compared."""

    def create_accumulator(self) -> Any:
        return np.zeros(3)

    def add(self, value: int, accumulator: Any) -> Any:
        return accumulator + value


def test_accumulators_are_stored_however_they_compare(task: Subtask) -> None:
    descriptor = AggregatingStateDescriptor("vectors", Vectors())
    state = task.backend.state(descriptor, WINDOW, owned=True)
    for key in (1, 2):
        task.at(key)
        state.set_current_namespace((0, 10))
        state.add(key)
    state.clear()
    task.next_epoch()
    state = task.backend.state(descriptor, WINDOW, owned=True)
    state.set_current_namespace((0, 10))
    task.at(1)
    assert state.get().tolist() == [1, 1, 1]
    task.at(2)
    assert state.get() is None


def test_what_was_reduced_to_a_row_is_not_the_row(task: Subtask) -> None:
    def add(one: list[int], other: list[int]) -> list[int]:
        one[0] += other[0]
        return one

    state = task.backend.state(ReducingStateDescriptor("sum", add), WINDOW, owned=True)
    task.at(1)
    rows = [[1], [2]]
    for window in ((0, 10), (5, 15)):
        state.set_current_namespace(window)
        for row in rows:
            state.add(row)
    assert rows == [[1], [2]]
    for window in ((0, 10), (5, 15)):
        state.set_current_namespace(window)
        assert state.get() == [3]


def test_a_value_of_another_type_is_found_when_it_is_written(task: Subtask) -> None:
    state = task.backend.state(ReducingStateDescriptor("sum", max, Types.LONG()), WINDOW, owned=True)
    task.at(1)
    state.set_current_namespace((0, 10))
    state.add("text")
    with pytest.raises(StateTypeError, match=r"operator 'counter', key 1, state 'sum'"):
        task.commit()


#: By kind: the descriptor, what puts something there, and what is found then.
STATES: dict[str, tuple[Any, Any, Any]] = {
    "value": (ValueStateDescriptor("s", Types.LONG()), lambda s: s.update(5), lambda s: s.value() == 5),
    "list": (ListStateDescriptor("s", Types.LONG()), lambda s: s.add(5), lambda s: s.get() == [5]),
    "map": (MapStateDescriptor("s", int, int), lambda s: s.put(5, 6), lambda s: list(s.items()) == [(5, 6)]),
    "reducing": (ReducingStateDescriptor("s", max, Types.LONG()), lambda s: s.add(5), lambda s: s.get() == 5),
}


@pytest.mark.parametrize("kind", STATES)
def test_namespaces_that_are_empty_are_forgotten(task: Subtask, kind: str) -> None:
    descriptor, fill, filled = STATES[kind]
    state = task.backend.state(descriptor, WINDOW)
    for epoch in range(20):
        for key in range(5):
            task.at(key)
            state.set_current_namespace((epoch, epoch + 1))
            fill(state)
            if epoch:
                state.set_current_namespace((epoch - 1, epoch))
                assert filled(state)
                state.clear()
        task.next_epoch(cached=True)
        assert len(state._spaces) <= 4
    task.at(3)
    state.set_current_namespace((19, 20))
    assert filled(state)
