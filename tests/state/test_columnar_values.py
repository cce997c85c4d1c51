"""Bulk access to value state works on columns; whatever happens to them, it gives what was put."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.common import Row, Types
from holdfast.errors import StateError, StateTypeError
from holdfast.state.columnar_values import ValueColumns, fits_columns
from holdfast.state.descriptors import ValueStateDescriptor
from holdfast.state.keygroups import KeyGroupRange
from holdfast.testing.contracts.keyed_subtask import scope_of
from holdfast.testing.contracts.stores import content
from holdfast.types.typeinfo import TypeInformation
from tests.kit.properties import examples
from tests.state.backend_under_test import Subtask
from tests.state.stores import BACKENDS

PAIR = Types.TUPLE([Types.LONG(), Types.DOUBLE()])
SMALL = Types.ROW_NAMED(["count", "share", "open"], [Types.SHORT(), Types.FLOAT(), Types.BOOLEAN()])

_longs = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1))
_doubles = st.one_of(st.none(), st.floats(allow_nan=False))
#: By name: the types of key and value, and what both are drawn from.
TYPES: dict[str, tuple[TypeInformation, TypeInformation, st.SearchStrategy[Any], st.SearchStrategy[Any]]] = {
    "number": (Types.LONG(), Types.LONG(), st.integers(-3, 3), _longs),
    "tuple": (
        Types.STRING(),
        PAIR,
        st.sampled_from(["", "a", "b", "é" * 200]),
        st.one_of(st.none(), st.tuples(_longs, _doubles)),
    ),
    "zero": (Types.DOUBLE(), Types.LONG(), st.sampled_from([0.0, -0.0, 1.5, math.inf]), _longs),
    "row": (
        Types.TUPLE([Types.INT()]),
        SMALL,
        st.tuples(st.integers(0, 4)),
        st.one_of(
            st.none(),
            st.tuples(
                st.one_of(st.none(), st.integers(-(2**15), 2**15 - 1)),
                st.one_of(st.none(), st.floats(width=32, allow_nan=False)),
                st.one_of(st.none(), st.booleans()),
            ),
        ),
    ),
}


def column(values: list[Any], type_info: TypeInformation) -> pa.Array:
    arrow_type = type_info.arrow_type()
    if pa.types.is_struct(arrow_type):
        names = [arrow_type.field(at).name for at in range(arrow_type.num_fields)]
        values = [None if value is None else dict(zip(names, value, strict=True)) for value in values]
    return pa.array(values, arrow_type)


def rows_of(values: pa.Array) -> list[Any]:
    return [tuple(value.values()) if isinstance(value, dict) else value for value in values.to_pylist()]


#: Two states share their caches.
STATES = ("first", "second")


@st.composite
def histories(draw: st.DrawFn, name: str) -> list[tuple[str, Any, Any]]:
    _, _, keys, values = TYPES[name]
    several, which = st.lists(keys, min_size=0, max_size=6), st.sampled_from(STATES)
    entries = st.lists(st.tuples(keys, values), max_size=6)
    steps = st.one_of(
        st.tuples(st.just("read"), which, several),
        st.tuples(st.just("write"), which, entries),
        st.tuples(st.just("write"), which, entries),
        st.tuples(st.just("one"), which, st.tuples(keys, values)),
        st.tuples(st.just("expect"), st.none(), st.lists(keys, min_size=1, max_size=6)),
        st.tuples(st.just("spill"), st.none(), st.none()),
        st.tuples(st.just("epoch"), st.none(), st.sampled_from(["same", "other", "back"])),
    )
    return draw(st.lists(steps, max_size=14))


class Run:
    """States that are used in bulk, and what they ought to hold."""

    def __init__(self, backend: str, name: str, directory: Path, cache_limit: int | None) -> None:
        self.key_type, self.value_type, _, _ = TYPES[name]
        self.task = Subtask(backend, directory, scope_of(self.key_type), cache_limit)
        self.model: dict[str, dict[Any, Any]] = {state: {} for state in STATES}
        self._register()

    def _register(self) -> None:
        state = self.task.backend.state
        self.states = {name: state(ValueStateDescriptor(name, self.value_type)) for name in STATES}

    def read(self, which: str, keys: list[Any]) -> None:
        found = self.states[which].get_many(pa.array(keys, self.key_type.arrow_type()))
        assert found.type == self.value_type.arrow_type()
        assert rows_of(found) == [self.model[which].get(key) for key in keys]
        if pa.types.is_struct(found.type):
            first = [None if value is None else value[0] for value in rows_of(found)]
            assert found.field(0).to_pylist() == first, "nothing is left below what is not there"

    def write(self, which: str, entries: list[tuple[Any, Any]]) -> None:
        keys = pa.array([key for key, _ in entries], self.key_type.arrow_type())
        self.states[which].put_many(keys, column([value for _, value in entries], self.value_type))
        self.model[which].update(entries)

    def one(self, which: str, entry: tuple[Any, Any]) -> None:
        """A key by itself."""
        key, value = entry
        self.task.at(key)
        found = self.states[which].value()
        assert (tuple(found) if isinstance(found, Row) else found) == self.model[which].get(key)
        self.states[which].update(value)
        self.model[which][key] = value

    def expect(self, _: None, keys: list[Any]) -> None:
        self.task.backend.expect([self.task.scope.key_codec.identity(key) for key in keys], keys)

    def spill(self, *_: None) -> None:
        self.task.backend._spill()

    def epoch(self, _: None, worker: str) -> None:
        """The next epoch, in the same worker, in another one, or in one that had the subtask before."""
        kept = self.task.backend
        self.task.next_epoch(cached=worker == "same")
        self._register()
        if worker == "back":
            self.task.backend.adopt_keys(kept)

    def go(self, history: list[tuple[str, Any, Any]]) -> None:
        for step, which, argument in history:
            getattr(self, step)(which, argument)
        self.epoch(None, "other")
        for which in STATES:
            self.read(which, list(self.model[which]))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", TYPES)
def test_what_was_put_is_there(backend: str, name: str) -> None:
    @settings(max_examples=examples(60 if backend == "lmdb" else 15), deadline=None)
    @given(histories(name), st.sampled_from([None, 0, 2]))
    def run(history: list[tuple[str, Any, Any]], cache_limit: int | None) -> None:
        with tempfile.TemporaryDirectory() as directory:
            running = Run(backend, name, Path(directory), cache_limit)
            try:
                running.go(history)
            finally:
                running.task.close()

    run()


@pytest.fixture
def task(tmp_path: Path) -> Iterator[Subtask]:
    subtask = Subtask("lmdb", tmp_path)
    yield subtask
    subtask.close()


def test_the_same_bytes_are_stored_key_by_key(task: Subtask, tmp_path: Path) -> None:
    entries: dict[int, tuple[int | None, float | None]] = {
        key: (None if key % 5 == 0 else (-1) ** key * key**7, None if key % 7 == 0 else key / 3) for key in range(300)
    }
    descriptor = ValueStateDescriptor("pair", PAIR)
    task.backend.state(descriptor).put_many(pa.array(list(entries)), column(list(entries.values()), PAIR))
    task.next_epoch()
    other = Subtask("lmdb", tmp_path / "other")
    state = other.backend.state(descriptor)
    for key, value in entries.items():
        other.at(key)
        state.update(value)
    other.next_epoch()
    assert content(task.store) == content(other.store)
    other.close()


def test_what_is_not_a_number_stays_so(task: Subtask) -> None:
    state = task.backend.state(ValueStateDescriptor("value", "double"))
    state.put_many(pa.array([1, 2]), pa.array([math.nan, -0.0]))
    task.next_epoch()
    first, second = task.backend.state(ValueStateDescriptor("value", "double")).get_many(pa.array([1, 2])).to_pylist()
    assert math.isnan(first) and math.copysign(1, second) == -1


def test_keys_are_looked_up_once_for_reading_and_writing(task: Subtask, monkeypatch: pytest.MonkeyPatch) -> None:
    state, keys, calls = task.backend.state(ValueStateDescriptor("value", "bigint")), pa.array([1, 2, 3]), 0
    state.put_many(keys, keys)
    real: Callable[..., Any] = ValueColumns.find

    def counting(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        return real(*arguments)

    monkeypatch.setattr(ValueColumns, "find", counting)
    asked = pa.array([3, 1])
    state.put_many(asked, state.get_many(asked))
    assert calls == 1


def test_rows_read_ahead_see_what_was_put_in_bulk(task: Subtask) -> None:
    descriptor, keys = ValueStateDescriptor("value", "bigint"), pa.array([1, 2])
    task.backend.state(descriptor).put_many(keys, pa.array([1, 1]))
    task.next_epoch()
    state = task.backend.state(descriptor)
    for key in (1, 2):
        task.at(key)
        assert state.value() == 1
    task.backend._spill()
    state.put_many(keys, pa.array([2, 2]))
    task.backend.expect([1, 2], [1, 2])
    task.at(1)
    assert state.value() == 2
    state.update(12)
    task.next_epoch()
    assert task.backend.state(descriptor).get_many(keys).to_pylist() == [12, 2]


def test_what_open_puts_is_not_replaced_by_what_a_worker_knew(task: Subtask) -> None:
    descriptor, keys = ValueStateDescriptor("value", "bigint"), pa.array([1, 2])
    task.backend.state(descriptor).put_many(keys, pa.array([1, 1]))
    kept = task.backend
    task.next_epoch()
    state = task.backend.state(descriptor)
    state.put_many(keys, pa.array([9, 9]))
    task.backend.adopt_keys(kept)
    assert state.get_many(keys).to_pylist() == [9, 9]


def test_nothing_is_left_below_a_value_that_another_worker_removed(task: Subtask) -> None:
    descriptor, keys = ValueStateDescriptor("pair", PAIR), pa.array([1, 2])
    task.backend.state(descriptor).put_many(keys, column([(5, 0.5), (6, 0.5)], PAIR))
    kept = task.backend
    task.next_epoch()
    task.backend.state(descriptor).put_many(keys, column([None, None], PAIR))
    task.next_epoch()
    state = task.backend.state(descriptor)
    task.backend.adopt_keys(kept)
    found = state.get_many(keys)
    assert found.to_pylist() == [None, None]
    assert found.field(0).to_pylist() == [None, None]


def test_no_more_rows_are_kept_than_the_cache_may_hold(tmp_path: Path) -> None:
    task = Subtask("lmdb", tmp_path, cache_limit=100)
    state, keys = task.backend.state(ValueStateDescriptor("value", "bigint")), pa.array(list(range(1000)))
    state.put_many(keys, keys)
    task.next_epoch(cached=True)
    assert state.cached_entries() == 100
    assert state.get_many(keys).to_pylist() == list(range(1000))
    task.close()


def test_keys_of_another_subtask_are_refused(tmp_path: Path) -> None:
    task = Subtask("lmdb", tmp_path, scope_of("bigint", KeyGroupRange(0, 1)))
    state = task.backend.state(ValueStateDescriptor("value", "bigint"))
    with pytest.raises(StateError, match=r"is in key group \d+, but this subtask owns 0 to 1"):
        state.get_many(pa.array(list(range(100))))
    task.close()


def test_values_that_do_not_fit_the_type_are_refused(task: Subtask) -> None:
    state = task.backend.state(ValueStateDescriptor("value", "int"))
    with pytest.raises(Exception, match="value"):
        state.put_many(pa.array([1]), pa.array([2**40]))
    with pytest.raises(StateTypeError, match="2 keys and 1 values"):
        state.put_many(pa.array([1, 2]), pa.array([1]))
    assert state.get_many(pa.array([1])).to_pylist() == [None]


def test_types_that_are_not_for_columns() -> None:
    assert fits_columns(PAIR) and fits_columns(Types.INT())
    assert not fits_columns(Types.STRING())
    assert not fits_columns(Types.TUPLE([Types.LONG(), Types.LIST(Types.LONG())]))
