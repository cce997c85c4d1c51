"""A subtask that goes from one worker process to another and back: the keys that each of them knows are of use again,
the state that it had of them is not.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.common import Time
from holdfast.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from holdfast.state.keyed_backend import KeyedStateBackend
from holdfast.state.ttl_config import StateTtlConfig
from tests.kit.properties import examples
from tests.state.backend_under_test import Subtask
from tests.state.stores import BACKENDS


class Total:
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: int, accumulator: int) -> int:
        return accumulator + value

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, left: int, right: int) -> int:
        return left + right


def expiring(descriptor: StateDescriptor) -> StateDescriptor:
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
    return descriptor


DESCRIPTORS: dict[str, StateDescriptor] = {
    "value": ValueStateDescriptor("value", "bigint"),
    "pickled": ValueStateDescriptor("pickled", None),
    "reducing": ReducingStateDescriptor("reducing", lambda left, right: left + right, "bigint"),
    "aggregating": AggregatingStateDescriptor("aggregating", Total(), "bigint"),
    "list": ListStateDescriptor("list", "bigint"),
    "expiring": expiring(ValueStateDescriptor("expiring", "bigint")),
}


class Workers:
    """One subtask, and what each worker kept of it."""

    def __init__(self, backend: str, directory: Path) -> None:
        self.task = Subtask(backend, directory)
        self.kept: dict[int, KeyedStateBackend] = {}
        self.worker = 0
        self.states = {name: self.task.backend.state(one) for name, one in DESCRIPTORS.items()}

    def next_epoch(self, worker: int) -> None:
        if worker == self.worker:
            self.task.next_epoch(cached=True)
            return
        self.kept[self.worker] = self.task.backend
        self.task.next_epoch()
        self.states = {name: self.task.backend.state(one) for name, one in DESCRIPTORS.items()}
        self.worker = worker
        if worker in self.kept:
            self.task.backend.adopt_keys(self.kept.pop(worker))


_keys = st.integers(0, 2)
_operations = st.one_of(
    st.tuples(st.just("set"), _keys, st.integers(-5, 5)),
    st.tuples(st.just("clear"), _keys, st.just(0)),
    st.tuples(st.just("read"), _keys, st.just(0)),
    st.tuples(st.just("announce"), st.lists(_keys, min_size=1), st.just(0)),
    st.tuples(st.just("read many"), st.lists(_keys, min_size=1, unique=True), st.just(0)),
    st.tuples(st.just("write many"), st.lists(_keys, min_size=1, unique=True), st.integers(-5, 5)),
    st.tuples(st.just("spill"), st.just(0), st.just(0)),
    st.tuples(st.just("epoch"), st.integers(0, 1), st.just(0)),
    st.tuples(st.just("epoch"), st.integers(0, 1), st.just(0)),
)


def apply(workers: Workers, model: dict[str, dict[int, Any]], operation: tuple[str, Any, int]) -> None:
    name, keys, number = operation
    states = workers.states
    if name == "epoch":
        workers.next_epoch(keys)
    elif name == "spill":
        workers.task.backend._spill()
    elif name == "announce":
        workers.task.backend.expect(keys, keys)
    elif name == "read many":
        for kind in ("value", "expiring"):
            assert states[kind].get_many(pa.array(keys)).to_pylist() == [model[kind].get(key) for key in keys]
    elif name == "write many":
        for kind in ("value", "expiring"):
            states[kind].put_many(pa.array(keys), pa.array([number] * len(keys)))
            model[kind].update(dict.fromkeys(keys, number))
    else:
        workers.task.at(keys)
        apply_to_key(states, model, operation)


def apply_to_key(states: dict[str, Any], model: dict[str, dict[int, Any]], operation: tuple[str, int, int]) -> None:
    name, key, number = operation
    if name == "clear":
        for kind, state in states.items():
            state.clear()
            model[kind].pop(key, None)
    elif name == "set":
        states["value"].update(number)
        states["expiring"].update(number)
        states["pickled"].update([number])
        model["value"][key] = model["expiring"][key] = number
        model["pickled"][key] = [number]
        for kind in ("reducing", "aggregating"):
            states[kind].add(number)
            model[kind][key] = model[kind].get(key, 0) + number
        states["list"].add(number)
        model["list"][key] = [*model["list"].get(key, []), number]
    else:
        for kind in ("value", "expiring", "pickled"):
            assert states[kind].value() == model[kind].get(key)
        for kind in ("reducing", "aggregating"):
            assert states[kind].get() == model[kind].get(key)
        assert states["list"].get() == model["list"].get(key, [])


@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=examples(100), deadline=None)
@given(operations=st.lists(_operations, min_size=20, max_size=40))
def test_a_subtask_that_goes_to_and_fro_has_the_state_of_its_last_epoch(
    backend: str, operations: list[tuple[str, Any, int]]
) -> None:
    model: dict[str, dict[int, Any]] = {kind: {} for kind in DESCRIPTORS}
    with tempfile.TemporaryDirectory() as directory:
        workers = Workers(backend, Path(directory))
        try:
            for operation in operations:
                apply(workers, model, operation)
            for key in range(3):
                apply(workers, model, ("read", key, 0))
        finally:
            workers.task.close()


@pytest.mark.parametrize("backend", BACKENDS)
def test_state_is_read_ahead_where_it_was_read_key_by_key(backend: str, tmp_path: Path) -> None:
    workers = Workers(backend, tmp_path)
    keys = list(range(100))
    for key in keys:
        apply(workers, {kind: {} for kind in DESCRIPTORS}, ("set", key, key))
    workers.next_epoch(1)
    workers.next_epoch(0)
    state, loads = workers.states["value"], []
    for start in range(0, 100, 20):
        workers.task.backend.expect(keys[start : start + 20], keys[start : start + 20])
        for key in keys[start : start + 20]:
            workers.task.at(key)
            assert state.value() == key
        loads.append(state._loads)
    assert loads == [20, 0, 0, 0, 0]
    workers.task.close()
