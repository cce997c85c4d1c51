"""When states with a time to live expire, what is seen of them then, and how often the clock is read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import StateDescriptorError, StateTypeError
from holdfast.state.descriptors import ListStateDescriptor, MapStateDescriptor, StateDescriptor, ValueStateDescriptor
from holdfast.state.handles import DistributionMode
from holdfast.state.keyed_backend import KeyedStateBackend
from holdfast.state.layout import LOCAL_PREFIX
from holdfast.state.operator_state import DefaultOperatorStateBackend
from holdfast.state.ttl_config import StateTtlConfig
from holdfast.testing.contracts.stores import LOWEST
from tests.state.backend_under_test import Subtask
from tests.state.expiring import KINDS, TTL, builder, content, descriptor, expected, put
from tests.state.stores import BACKENDS

LAZY = builder().disable_cleanup_in_background()
ON_READ = builder().update_ttl_on_read_and_write()
VISIBLE = builder().return_expired_if_not_cleaned_up().disable_cleanup_in_background()


@pytest.fixture(params=BACKENDS)
def task(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Subtask]:
    subtask = Subtask(request.param, tmp_path)
    subtask.at(1)
    yield subtask
    subtask.close()


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def entries(task: Subtask) -> int:
    """How many entries of states the store holds."""
    task.backend.flush()
    return sum(1 for _ in task.store.scan(LOWEST, LOCAL_PREFIX))


def next_epoch(task: Subtask, cached: bool) -> None:
    task.next_epoch(cached)
    task.at(1)


# When


@pytest.mark.parametrize("stored", [False, True])
def test_state_lives_for_its_time(task: Subtask, kind: str, stored: bool) -> None:
    config = LAZY.build()
    put(task.backend.state(descriptor(kind, config)), kind, 7)
    if stored:
        next_epoch(task, cached=False)
    task.advance(TTL - 1)
    assert content(task.backend.state(descriptor(kind, config)), kind) == expected(kind, 7)
    assert entries(task) == 1
    task.advance(1)
    assert content(task.backend.state(descriptor(kind, config)), kind) is None
    assert entries(task) == 0, "a read removes it"
    put(task.backend.state(descriptor(kind, config)), kind, 8)
    assert content(task.backend.state(descriptor(kind, config)), kind) == expected(kind, 8), "nothing of it comes back"


@pytest.mark.parametrize("cached", [True, False])
def test_writing_renews_and_reading_does_not(task: Subtask, cached: bool) -> None:
    written, read = (ValueStateDescriptor(name, "bigint") for name in ("written", "read"))
    for one in (written, read):
        one.enable_time_to_live(LAZY.build())
        task.backend.state(one).update(0)
    for _ in range(3):
        task.advance(TTL // 2)
        next_epoch(task, cached)
        task.backend.state(written).update(1)
        task.backend.state(read).value()
    assert task.backend.state(written).value() == 1
    assert task.backend.state(read).value() is None


@pytest.mark.parametrize("cached", [True, False])
def test_reading_renews_where_asked_for(task: Subtask, kind: str, cached: bool) -> None:
    config = ON_READ.build()
    put(task.backend.state(descriptor(kind, config)), kind, 7)
    for _ in range(3):
        task.advance(TTL - 1)
        next_epoch(task, cached)
        assert content(task.backend.state(descriptor(kind, config)), kind) == expected(kind, 7)
    task.advance(TTL)
    assert content(task.backend.state(descriptor(kind, config)), kind) is None


def test_reading_twice_at_one_time_writes_once(task: Subtask) -> None:
    state = task.backend.state(descriptor("value", ON_READ.build()))
    state.update(1)
    next_epoch(task, cached=True)
    task.backend.flush()
    state.value()
    assert not state._dirty, "the time has not changed"
    task.advance(1)
    state.value()
    assert state._dirty


def test_combining_states_begin_anew(task: Subtask) -> None:
    reducing = task.backend.state(descriptor("reducing", LAZY.build()))
    aggregating = task.backend.state(descriptor("aggregating", LAZY.build()))
    for number, (total, text) in enumerate([(1, "1 of 1"), (3, "3 of 2"), (3, "3 of 1")]):
        reducing.add(number + 1)
        aggregating.add(number + 1)
        assert (reducing.get(), aggregating.get()) == (total, text)
        task.advance(TTL - 1 if number == 0 else TTL)


# One by one


@pytest.mark.parametrize("cached", [True, False])
def test_elements_of_a_list_expire_one_by_one(task: Subtask, cached: bool) -> None:
    config = LAZY.build()
    for number in range(5):
        task.backend.state(descriptor("list", config)).add(number)
        next_epoch(task, cached)
        task.advance(30)
        live = [one for one in range(number + 1) if (number - one + 1) * 30 < TTL]
        assert task.backend.state(descriptor("list", config)).get() == live


def test_a_list_is_rewritten_when_half_of_it_has_expired(task: Subtask) -> None:
    state = task.backend.state(descriptor("list", LAZY.build()))
    for number in range(4):
        state.add(number)
        next_epoch(task, cached=True)
        task.advance(30)
    assert state.get() == [1, 2, 3] and entries(task) == 4, "one of four is not worth it"
    task.advance(30)
    assert state.get() == [2, 3] and entries(task) == 1, "now the rest is written anew"


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("size", [3, 300])
def test_entries_of_a_map_expire_one_by_one(task: Subtask, cached: bool, size: int) -> None:
    config = LAZY.build()
    state = task.backend.state(descriptor("map", config))
    state.put_all({f"old {number}": number for number in range(size)})
    state.put("none", None)
    task.advance(TTL // 2)
    state.put("old 1", -1)
    state.put("new", None)
    next_epoch(task, cached)
    state = task.backend.state(descriptor("map", config))
    task.advance(TTL // 2)
    assert state.contains("old 1") and not state.contains("old 2") and not state.contains("none")
    assert dict(state.items()) == {"old 1": -1, "new": None}
    assert sorted(state.keys()) == ["new", "old 1"] and sorted(state.values(), key=str) == [-1, None]
    assert not state.is_empty()
    assert entries(task) == 2
    task.advance(TTL // 2)
    assert state.is_empty() and list(state.items()) == [] and state.get("new") is None
    assert entries(task) == 0


def test_an_iteration_that_outlives_its_key_changes_nothing(task: Subtask) -> None:
    state = task.backend.state(descriptor("map", ON_READ.build()))
    for key in (1, 2):
        task.at(key)
        state.put_all({"a": key, "b": key})
        task.advance(TTL // 2)
    next_epoch(task, cached=False)
    state = task.backend.state(descriptor("map", ON_READ.build()))
    walk = iter(state.items())
    task.at(2)
    assert list(walk) == []
    assert dict(state.items()) == {"a": 2, "b": 2}


# What is seen of it


def test_expired_state_may_be_seen_until_it_is_removed(task: Subtask, kind: str) -> None:
    state = task.backend.state(descriptor(kind, VISIBLE.build()))
    put(state, kind, 7)
    next_epoch(task, cached=True)
    task.advance(TTL)
    assert content(state, kind) == expected(kind, 7)
    assert content(state, kind) is None, "the read has removed it"


def test_combining_states_go_on_from_what_may_be_seen(task: Subtask) -> None:
    reducing = task.backend.state(descriptor("reducing", VISIBLE.build()))
    reducing.add(1)
    task.advance(TTL)
    reducing.add(2)
    assert reducing.get() == 3


def test_elements_may_be_seen_until_the_list_is_rewritten(task: Subtask) -> None:
    state = task.backend.state(descriptor("list", VISIBLE.build()))
    state.add(0)
    task.advance(TTL // 2)
    state.add_all([1, 2])
    task.advance(TTL // 2)
    assert state.get() == [0, 1, 2]
    task.advance(TTL // 2)
    assert state.get() == [0, 1, 2]
    assert state.get() == []


def test_all_keys_that_have_state_that_has_not_expired(task: Subtask, kind: str) -> None:
    one = descriptor(kind, LAZY.build())
    for key in range(6):
        task.at(key)
        put(task.backend.state(one), kind, key)
        if key == 2:
            next_epoch(task, cached=True)
            task.advance(TTL // 2)
    task.advance(TTL // 2)
    found = []
    task.backend.apply_to_all_keys(one, lambda key, state: found.append((key, content(state, kind))))
    assert sorted(found) == [(key, expected(kind, key)) for key in (3, 4, 5)]


def test_values_that_can_be_changed_in_place(task: Subtask) -> None:
    given = [1]
    state = task.backend.state(descriptor("value", LAZY.build(), None))
    state.update(given)
    given.append(2)
    state.value().append(3)
    assert state.value() == [1]
    next_epoch(task, cached=False)
    assert task.backend.state(descriptor("value", LAZY.build(), None)).value() == [1]


def test_wrong_types_are_named(task: Subtask, kind: str) -> None:
    state = task.backend.state(descriptor(kind, LAZY.build()))
    with pytest.raises((StateTypeError, TypeError)):
        # Ignored: what is refused.
        state.update("text") if kind == "value" else put(state, kind, "text")  # type: ignore[arg-type]
        task.backend.flush()


# Registration


def test_one_name_has_one_time_to_live(task: Subtask) -> None:
    state = task.backend.state(descriptor("value", LAZY.build()))
    assert task.backend.state(descriptor("value", LAZY.build())) is state
    with pytest.raises(StateDescriptorError, match=r"'counter' asks for the value state 'value' of LONG with two"):
        task.backend.state(descriptor("value", ON_READ.build()))
    with pytest.raises(StateDescriptorError, match=r"twice: as value state of .* with a time to live, and as value"):
        task.backend.state(descriptor("value"))


@pytest.mark.parametrize("mode", list(DistributionMode))
def test_operator_state_does_not_expire(mode: DistributionMode) -> None:
    backend = DefaultOperatorStateBackend("Operator 'buffer'")
    asks: dict[DistributionMode, tuple[Any, StateDescriptor]] = {
        DistributionMode.SPLIT_DISTRIBUTE: (backend.get_list_state, ListStateDescriptor("s", int)),
        DistributionMode.UNION: (backend.get_union_list_state, ListStateDescriptor("s", int)),
        DistributionMode.BROADCAST: (backend.get_broadcast_state, MapStateDescriptor("s", int, int)),
    }
    ask, one = asks[mode]
    one.enable_time_to_live(LAZY.build())
    with pytest.raises(StateDescriptorError, match=r"'buffer' asked for operator state with a time to live.*'s'"):
        ask(one)


# The clock


class CountingClock:
    """``slow`` milliseconds go by between two looks at it."""

    def __init__(self, slow: int = 0) -> None:
        self.now = 0
        self.reads = 0
        self.slow = slow

    def __call__(self) -> int:
        self.reads += 1
        self.now += self.slow
        return self.now


def with_clock(task: Subtask, clock: CountingClock, config: StateTtlConfig) -> tuple[KeyedStateBackend, Any]:
    backend = KeyedStateBackend(task.store, task.scope, task.name, None, clock)
    return backend, backend.state(descriptor("value", config))


def access(backend: KeyedStateBackend, state: Any, times: int) -> None:
    for key in range(times):
        backend.context.key = backend.context.identity = key
        state.update(key)


def test_the_clock_is_read_once_per_batch(task: Subtask) -> None:
    clock = CountingClock()
    backend, state = with_clock(task, clock, LAZY.build())
    before = clock.reads
    for _ in range(10):
        backend.begin_batch(100)
        access(backend, state, 100)
    assert clock.reads - before == 10


def test_without_a_time_to_live_it_is_never_read(task: Subtask) -> None:
    clock = CountingClock()
    backend = KeyedStateBackend(task.store, task.scope, task.name, None, clock)
    state = backend.state(descriptor("value"))
    for _ in range(10):
        backend.begin_batch(100)
        access(backend, state, 100)
    backend.end_epoch()
    assert clock.reads == 0


def test_in_a_long_batch_it_is_read_again(task: Subtask) -> None:
    fast, slow = CountingClock(), CountingClock(slow=50)
    for clock in (fast, slow):
        backend, state = with_clock(task, clock, builder(10**9).build())
        backend.begin_batch(20_000)
        access(backend, state, 20_000)
    assert fast.reads < 30, "fast rows have the time of a thousand rows before"
    assert slow.reads > 10_000, "slow rows have their own"
