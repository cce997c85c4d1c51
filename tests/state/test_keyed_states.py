"""The kinds of keyed state, on every backend."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import (
    StateAccessError,
    StateDescriptorError,
    StateError,
    StateTypeError,
)
from holdfast.state import keyed_backend
from holdfast.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.states import AppendingState, ListState, MapState, MergingState, State, ValueState
from holdfast.testing.contracts.keyed_subtask import scope_of
from holdfast.types.typeinfo import Types
from tests.state.backend_under_test import Subtask
from tests.state.stores import BACKENDS

PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])


class Average:
    def create_accumulator(self) -> tuple:
        return 0, 0

    def add(self, value: int, accumulator: tuple) -> tuple:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: tuple) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, left: tuple, right: tuple) -> tuple:
        return left[0] + right[0], left[1] + right[1]


@pytest.fixture(params=BACKENDS)
def task(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Subtask]:
    subtask = Subtask(request.param, tmp_path)
    yield subtask
    subtask.close()


# Value state


def test_value_state(task: Subtask) -> None:
    descriptor = ValueStateDescriptor("pair", PAIR)
    state = task.backend.state(descriptor)
    assert isinstance(state, ValueState) and isinstance(state, State)
    task.at(1)
    assert state.value() is None
    state.update((1, 2))
    task.at(2)
    assert state.value() is None
    task.next_epoch()
    state = task.backend.state(descriptor)
    task.at(1)
    assert state.value() == (1, 2)
    state.update(None)
    assert state.value() is None
    task.at(3)
    state.clear()
    task.next_epoch()
    state = task.backend.state(descriptor)
    task.at(1)
    assert state.value() is None


def test_an_update_without_a_read_is_kept(task: Subtask) -> None:
    descriptor = ValueStateDescriptor("v", "bigint")
    task.at(5)
    task.backend.state(descriptor).update(7)
    task.next_epoch()
    task.at(5)
    assert task.backend.state(descriptor).value() == 7


@pytest.mark.parametrize(
    ("type_like", "sample", "spoil"),
    [
        (None, {"deep": [1]}, lambda value: value["deep"].append(9)),
        (None, ("in a tuple", [1]), lambda value: value[1].append(9)),
        ("array<bigint>", [1], lambda value: value.append(9)),
        (Types.TUPLE([Types.LIST(Types.LONG())]), ([1],), lambda value: value[0].append(9)),
        (dict[str, int], {"a": 1}, lambda value: value.update(b=9)),
    ],
)
def test_a_value_changed_in_place_is_not_stored(
    task: Subtask, type_like: Any, sample: Any, spoil: Callable[[Any], object]
) -> None:
    descriptor = ValueStateDescriptor("v", type_like)
    state = task.backend.state(descriptor)
    expected, sample = sample, copy.deepcopy(sample)
    task.at(1)
    state.update(sample)
    spoil(sample)
    assert state.value() == expected, "changed after the update"
    spoil(state.value())
    assert state.value() == expected, "changed after a read"
    task.next_epoch(cached=True)
    task.at(1)
    spoil(state.value())
    task.next_epoch(cached=True)
    task.at(1)
    assert state.value() == expected
    task.next_epoch()
    task.at(1)
    assert task.backend.state(descriptor).value() == expected


def test_a_bytearray_in_a_tuple_is_not_shared(task: Subtask) -> None:
    state = task.backend.state(ValueStateDescriptor("v", Types.TUPLE([Types.BYTES()])))
    task.at(1)
    data = bytearray(b"abc")
    state.update((data,))
    data[0] = 0
    assert state.value() == (b"abc",)


def test_a_wrong_type_names_state_operator_and_key(task: Subtask) -> None:
    state = task.backend.state(ValueStateDescriptor("v", PAIR))
    task.at(41)
    state.update((1, 2))
    task.at(42)
    state.update((1, "two"))
    with pytest.raises(StateTypeError, match=r"operator 'counter', key 42, state 'v': .*TUPLE<LONG, LONG>"):
        task.backend.flush()
    other = task.backend.state(ValueStateDescriptor("number", "bigint"))
    with pytest.raises(StateTypeError, match="LONG"):
        other.update("text")


def test_keys_that_only_look_equal(tmp_path: Path) -> None:
    for name in BACKENDS:
        task = Subtask(name, tmp_path / name, scope_of(key_type=None))
        descriptor = ValueStateDescriptor("v", "string")
        state = task.backend.state(descriptor)
        keys = [1, 1.0, True, "1", b"1", (1,), (1.0,)]
        for key in keys:
            task.at(key)
            state.update(repr(key))
        task.next_epoch()
        state = task.backend.state(descriptor)
        for key in keys:
            task.at(key)
            assert state.value() == repr(key)
        task.close()


def test_without_a_key(task: Subtask) -> None:
    value = task.backend.state(ValueStateDescriptor("v", "bigint"))
    elements = task.backend.state(ListStateDescriptor("l", "bigint"))
    entries = task.backend.state(MapStateDescriptor("m", "bigint", "bigint"))
    for use in (value.value, value.clear, elements.get, entries.clear, entries.is_empty):
        with pytest.raises(StateAccessError, match="'counter' was used without a current key"):
            use()
    for use, argument in ((value.update, 1), (elements.add, 1), (entries.contains, 1)):
        with pytest.raises(StateAccessError):
            use(argument)


def test_a_key_of_another_subtask(tmp_path: Path) -> None:
    for name in BACKENDS:
        task = Subtask(name, tmp_path / name, scope_of(key_groups=KeyGroupRange(0, 0)))
        state = task.backend.state(ValueStateDescriptor("v", "bigint"))
        with pytest.raises(StateError, match="this subtask owns 0 to 0"):
            for key in range(1000):
                task.at(key)
                state.value()
        task.close()


class CountingReads:
    """Counts the reads of a task's store."""

    def __init__(self, task: Subtask) -> None:
        self.single = self.many = 0
        get, get_many = task.store.get, task.store.get_many

        def count_get(key: bytes) -> bytes | None:
            self.single += 1
            return get(key)

        def count_many(keys: list[bytes]) -> list[bytes | None]:
            self.many += 1
            return get_many(keys)

        task.store.get, task.store.get_many = count_get, count_many


# List state


def test_list_state(task: Subtask) -> None:
    descriptor = ListStateDescriptor("l", "bigint")
    state = task.backend.state(descriptor)
    assert isinstance(state, ListState) and isinstance(state, MergingState) and isinstance(state, AppendingState)
    task.at(1)
    assert list(state.get()) == []
    state.add(1)
    state.add_all([2, 3])
    assert list(state) == [1, 2, 3]
    task.next_epoch()
    state = task.backend.state(descriptor)
    task.at(1)
    state.add(4)
    assert state.get() == [1, 2, 3, 4]
    task.next_epoch(cached=True)
    task.at(1)
    state.add(5)
    task.next_epoch()
    state = task.backend.state(descriptor)
    task.at(1)
    assert state.get() == [1, 2, 3, 4, 5]
    state.update([9, 8])
    state.add(7)
    task.at(2)
    assert state.get() == []
    task.next_epoch()
    state = task.backend.state(descriptor)
    task.at(1)
    assert state.get() == [9, 8, 7]
    state.update([])
    task.next_epoch()
    assert states_in(task) == 0


def test_list_elements_changed_in_place_are_not_stored(task: Subtask) -> None:
    state = task.backend.state(ListStateDescriptor("l", None))
    task.at(1)
    element = [1]
    state.add(element)
    element.append(2)
    state.get()[0].append(3)
    state.get().append([4])
    assert state.get() == [[1]]


def test_none_is_no_element(task: Subtask) -> None:
    state = task.backend.state(ListStateDescriptor("l", None))
    task.at(1)
    with pytest.raises(StateTypeError, match="state 'l': None"):
        state.add(None)


def states_in(task: Subtask) -> int:
    """How many entries of states the store holds."""
    return sum(1 for _ in task.store.scan(b"", b"\x80"))


def test_the_last_append_costs_what_the_first_does(task: Subtask) -> None:
    descriptor = ListStateDescriptor("l", "string")
    task.at(1)
    task.backend.state(descriptor).add_all([f"element {number}" for number in range(10_000)])
    task.next_epoch()
    written: list[int] = []
    write = task.store.write

    def measured(entries: list[tuple[bytes, bytes | None]]) -> None:
        written.append(sum(len(key) + len(value or b"") for key, value in entries))
        write(entries)

    task.store.write = measured
    task.at(1)
    task.backend.state(descriptor).add("one more")
    task.backend.flush()
    assert written and max(written) < 100
    assert len(task.store.changes_since(task.stamp.epoch).keys) == 1
    task.at(1)
    assert len(task.backend.state(descriptor).get()) == 10_001


# Map state


def test_map_state(task: Subtask) -> None:
    descriptor = MapStateDescriptor("m", "string", "bigint")
    state = task.backend.state(descriptor)
    assert isinstance(state, MapState)
    task.at(1)
    assert state.is_empty() and state.get("a") is None and not state.contains("a")
    state.put("a", 1)
    state["b"] = 2
    state.put_all({"c": 3, "d": 4})
    assert dict(state.items()) == {"a": 1, "b": 2, "c": 3, "d": 4}
    task.next_epoch()
    state = task.backend.state(descriptor)
    task.at(1)
    assert state["a"] == 1 and "b" in state and "z" not in state
    state.remove("a")
    del state["b"]
    state.remove("never there")
    state["e"] = 5
    state["c"] = 33
    assert sorted(state) == ["c", "d", "e"] == sorted(state.keys())
    assert sorted(state.values()) == [4, 5, 33]
    task.at(2)
    assert state.is_empty()
    task.next_epoch()
    state = task.backend.state(descriptor)
    task.at(1)
    assert dict(state.items()) == {"c": 33, "d": 4, "e": 5}
    state.clear()
    assert state.is_empty() and state.get("c") is None
    state.put("f", 6)
    task.next_epoch(cached=True)
    task.at(1)
    assert dict(state.items()) == {"f": 6}
    task.next_epoch()
    state = task.backend.state(descriptor)
    task.at(1)
    assert dict(state.items()) == {"f": 6}
    assert states_in(task) == 1


def test_map_values_may_be_none_and_keys_may_not(task: Subtask) -> None:
    descriptor = MapStateDescriptor("m", "bigint", "bigint")
    task.at(1)
    task.backend.state(descriptor).put(1, None)
    task.next_epoch()
    state = task.backend.state(descriptor)
    task.at(1)
    assert state.contains(1) and state.get(1) is None and list(state.items()) == [(1, None)]
    with pytest.raises(StateTypeError, match="state 'm': None"):
        state.put(None, 1)


def test_map_values_changed_in_place_are_not_stored(task: Subtask) -> None:
    state = task.backend.state(MapStateDescriptor("m", "bigint", None))
    task.at(1)
    value = {"a": 1}
    state.put(1, value)
    value["b"] = 2
    state.get(1)["c"] = 3
    next(iter(state.values()))["d"] = 4
    assert state.get(1) == {"a": 1}


def test_one_entry_of_a_large_map_touches_no_other(task: Subtask) -> None:
    descriptor = MapStateDescriptor("m", "bigint", "bigint")
    task.at(1)
    task.backend.state(descriptor).put_all({number: number for number in range(5000)})
    task.next_epoch()
    state = task.backend.state(descriptor)

    def no_scan(start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        raise AssertionError("the map was read")

    task.store.scan, scan = no_scan, task.store.scan
    task.at(1)
    assert state.get(4321) == 4321
    state.put(10_000, 1)
    state.remove(7)
    assert not state.contains(20_000)
    task.backend.flush()
    assert len(task.store.changes_since(task.stamp.epoch).keys) == 2
    task.store.scan = scan
    assert sum(1 for _ in state) == 5000


def test_a_map_may_change_while_it_is_read(task: Subtask) -> None:
    descriptor = MapStateDescriptor("m", "bigint", "bigint")
    task.at(1)
    task.backend.state(descriptor).put_all({number: number for number in range(1000)})
    task.next_epoch()
    state = task.backend.state(descriptor)
    task.at(1)
    for key, value in state.items():
        if key % 2:
            state.remove(key)
        else:
            state.put(key, value + 1)
    assert dict(state.items()) == {number: number + 1 for number in range(0, 1000, 2)}
    items = state.items()
    task.at(2)
    assert len(list(items)) == 500, "the key was that of the call"


def test_clearing_a_large_map_is_one_range(task: Subtask) -> None:
    descriptor = MapStateDescriptor("m", "bigint", "bigint")
    task.at(1)
    task.backend.state(descriptor).put_all({number: number for number in range(500)})
    task.next_epoch()
    task.at(1)
    task.backend.state(descriptor).clear()
    task.backend.flush()
    assert states_in(task) == 0
    assert len(task.store.changes_since(task.stamp.epoch).ranges) == 1


# Reducing and aggregating state


def test_reducing_state(task: Subtask) -> None:
    descriptor = ReducingStateDescriptor("r", lambda left, right: left + right, "bigint")
    state = task.backend.state(descriptor)
    assert isinstance(state, MergingState)
    task.at(1)
    assert state.get() is None
    for value in (1, 2, 3):
        state.add(value)
    assert state.get() == 6
    task.next_epoch()
    state = task.backend.state(descriptor)
    task.at(1)
    state.add(4)
    assert state.get() == 10
    state.clear()
    assert state.get() is None


@pytest.mark.parametrize("type_like", [None, PAIR])
def test_aggregating_state(task: Subtask, type_like: object) -> None:
    descriptor = AggregatingStateDescriptor("a", Average(), type_like)
    state = task.backend.state(descriptor)
    task.at(1)
    assert state.get() is None
    for value in (1, 2, 6):
        state.add(value)
    task.next_epoch()
    state = task.backend.state(descriptor)
    task.at(1)
    assert state.get() == 3.0
    state.add(3)
    assert state.get() == 3.0


# Namespaces


def test_namespaces_are_apart_and_merge(task: Subtask) -> None:
    windows = Types.TUPLE([Types.LONG(), Types.LONG()])
    descriptors = [
        ListStateDescriptor("l", "bigint"),
        ReducingStateDescriptor("r", lambda left, right: left + right, "bigint"),
        AggregatingStateDescriptor("a", Average(), PAIR),
    ]
    for number, start in enumerate((0, 10, 20)):
        for descriptor in descriptors:
            state = task.backend.state(descriptor, windows)
            task.at(1)
            state.set_current_namespace((start, start + 10))
            state.add(number + 1)
            state.set_current_namespace(None)
            assert not state.get()
    task.next_epoch()
    for descriptor, expected in zip(descriptors, ([1, 2, 3], 6, 2.0), strict=True):
        state = task.backend.state(descriptor, windows)
        task.at(1)
        state.set_current_namespace((20, 30))
        state.merge_namespaces((0, 10), [(10, 20), (20, 30)])
        assert not state.get(), "a source is empty, and the namespace as it was"
        state.set_current_namespace((0, 10))
        assert state.get() == expected
        task.at(2)
        assert not state.get()
    task.next_epoch()
    for descriptor, expected in zip(descriptors, ([1, 2, 3], 6, 2.0), strict=True):
        state = task.backend.state(descriptor, windows)
        task.at(1)
        state.set_current_namespace((0, 10))
        assert state.get() == expected
        state.set_current_namespace((10, 20))
        assert not state.get()


def test_namespaces_need_a_type(task: Subtask) -> None:
    state = task.backend.state(ListStateDescriptor("l", "bigint"))
    with pytest.raises(StateAccessError, match="without a type of namespaces"):
        state.set_current_namespace((0, 1))


# Registration


def test_one_name_is_one_state(task: Subtask) -> None:
    state = task.backend.state(ValueStateDescriptor("v", "bigint"))
    assert task.backend.state(ValueStateDescriptor("v", Types.LONG())) is state
    with pytest.raises(StateDescriptorError, match="'counter' registers the name 'v' twice"):
        task.backend.state(ValueStateDescriptor("v", "string"))
    with pytest.raises(StateDescriptorError, match=r"value state of .* list state"):
        task.backend.state(ListStateDescriptor("v", "bigint"))


def test_state_that_nobody_asks_for_stays(task: Subtask) -> None:
    kept, other = ValueStateDescriptor("kept", "bigint"), ValueStateDescriptor("other", "bigint")
    task.backend.state(other)
    task.at(1)
    task.backend.state(kept).update(1)
    task.next_epoch()
    task.at(1)
    task.backend.state(ValueStateDescriptor("new", "bigint")).update(2)
    assert {meta.name: meta.state_id for meta in task.backend.states_meta()} == {"other": 0, "kept": 1, "new": 2}
    task.next_epoch()
    task.at(1)
    assert task.backend.state(kept).value() == 1


# Caches


def test_caches_go_on_only_after_the_own_commit(task: Subtask) -> None:
    descriptor = ValueStateDescriptor("v", "bigint")
    state = task.backend.state(descriptor)
    task.at(1)
    state.update(1)
    task.next_epoch(cached=True)
    reads = CountingReads(task)
    task.at(1)
    assert state.value() == 1 and reads.single == 0
    state.update(2)
    task.backend.flush()
    task.store.rollback()
    assert not task.backend.resume(task.stamp), "what was rolled back may be in the caches"


def test_a_foreign_commit_ends_the_caches(task: Subtask) -> None:
    descriptor = ValueStateDescriptor("v", "bigint")
    task.at(1)
    task.backend.state(descriptor).update(1)
    stamp = task.commit()
    other = Subtask(task.name, task.directory)
    other.at(1)
    other.backend.state(descriptor).update(2)
    after = other.commit()
    assert not task.backend.resume(after)
    task.store.rollback()
    assert not task.backend.resume(stamp)


def test_the_cache_between_epochs_is_bounded(tmp_path: Path) -> None:
    for name in BACKENDS:
        task = Subtask(name, tmp_path / name, cache_limit=10)
        values = task.backend.state(ValueStateDescriptor("v", "bigint"))
        entries = task.backend.state(MapStateDescriptor("m", "bigint", "bigint"))
        for key in range(30):
            task.at(key)
            values.update(key)
            entries.put_all({1: 1, 2: 2})
        task.next_epoch(cached=True)
        assert values.cached_entries() + entries.cached_entries() <= 10
        for key in range(30):
            task.at(key)
            assert values.value() == key and entries.get(2) == 2
        task.close()


def test_the_cache_within_an_epoch_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed_backend, "_EPOCH_CACHE", 50)
    for name in BACKENDS:
        task = Subtask(name, tmp_path / name, scope_of(), cache_limit=10)
        values = task.backend.state(ValueStateDescriptor("v", "bigint"))
        entries = task.backend.state(MapStateDescriptor("m", "bigint", "bigint"), "bigint")
        elements = task.backend.state(ListStateDescriptor("l", "bigint"))
        for step in range(3):
            for key in range(100):
                task.at(key)
                values.update((values.value() or 0) + 1)
                entries.set_current_namespace(key % 7)
                entries.put(step, key)
                elements.add(step)
                cached = [state.cached_entries() for state in (values, entries, elements)]
                assert sum(cached) <= 60
        task.at(5)
        entries.set_current_namespace(5)
        entries.put_all({number: number for number in range(100, 400)})
        assert entries.cached_entries() <= 60
        task.commit()
        task.restart()
        values = task.backend.state(ValueStateDescriptor("v", "bigint"))
        entries = task.backend.state(MapStateDescriptor("m", "bigint", "bigint"), "bigint")
        elements = task.backend.state(ListStateDescriptor("l", "bigint"))
        for key in range(100):
            task.at(key)
            entries.set_current_namespace(key % 7)
            assert values.value() == 3
            assert elements.get() == [0, 1, 2]
            if key != 5:
                assert dict(entries.items()) == {0: key, 1: key, 2: key}
        task.at(5)
        entries.set_current_namespace(5)
        assert sum(1 for _ in entries) == 303
        task.close()
