"""Timers, on every backend."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import StateAccessError, StateTypeError
from holdfast.state import keyed_backend
from holdfast.state.descriptors import ValueStateDescriptor
from holdfast.state.timers import TimeDomain, Timer, TimerQueue, index_entry, state_entry
from holdfast.testing.contracts.keyed_subtask import scope_of
from holdfast.testing.contracts.stores import HIGHEST, LOWEST
from holdfast.types.typeinfo import Types
from tests.kit.properties import examples
from tests.state.backend_under_test import Subtask
from tests.state.stores import BACKENDS

EVENT, PROCESSING = TimeDomain.EVENT_TIME, TimeDomain.PROCESSING_TIME


@pytest.fixture(params=BACKENDS)
def task(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Subtask]:
    subtask = Subtask(request.param, tmp_path)
    yield subtask
    subtask.close()


def entries_in(task: Subtask) -> int:
    """Entries of the store but the registry of states."""
    return sum(1 for _ in task.store.scan(LOWEST, HIGHEST)) - 1


def test_timers_fire_in_time_order_over_all_keys(task: Subtask) -> None:
    timers = task.backend.timers("t", EVENT)
    assert timers.next_timestamp() is None
    for key in range(50):
        timers.register((key * 37) % 50, key)
    task.next_epoch()
    timers = task.backend.timers("t", EVENT)
    for key in range(50, 60):
        timers.register(key - 45, key)
    assert timers.next_timestamp() == 0
    fired = list(timers.advance(29))
    assert [timer.timestamp for timer in fired] == sorted([*range(30), *range(5, 15)])
    assert {timer.key for timer in fired if timer.timestamp == 7} == {52, 11}
    assert timers.next_timestamp() == 30
    assert list(timers.advance(29)) == []
    task.next_epoch()
    timers = task.backend.timers("t", EVENT)
    assert timers.next_timestamp() == 30
    assert len(list(timers.advance(1000))) == 20
    task.next_epoch()
    assert entries_in(task) == 0


def test_a_timer_is_there_once(task: Subtask) -> None:
    timers = task.backend.timers("t", EVENT)
    timers.register(5, 1)
    timers.register(5, 1)
    task.next_epoch()
    timers = task.backend.timers("t", EVENT)
    timers.register(5, 1)
    timers.register(5, 2)
    assert sorted(timers.advance(5)) == [Timer(5, 1, None), Timer(5, 2, None)]


def test_a_timer_that_was_deleted_is_there_once_again(task: Subtask) -> None:
    timers = task.backend.timers("t", EVENT)
    timers.register(4, 1)
    for key in (1, 2):
        timers.register(5, key)
    timers.delete(5, 1)
    timers.register_many(5, {1: 1}, None, ())
    fired = [(at, key) for at, due in timers.advance_together(5, most=10) for key, _ in due]
    assert sorted(fired) == [(4, 1), (5, 1), (5, 2)]
    assert timers.next_timestamp() is None


def test_delete(task: Subtask) -> None:
    timers = task.backend.timers("t", EVENT)
    for key in range(4):
        timers.register(5, key)
    timers.delete(5, 0)
    timers.delete(6, 1)
    task.next_epoch()
    timers = task.backend.timers("t", EVENT)
    timers.delete(5, 1)
    timers.delete(5, 2)
    timers.register(5, 2)
    timers.register(4, 9)
    timers.delete(4, 9)
    assert timers.next_timestamp() == 5
    assert [timer.key for timer in timers.advance(9)] in ([2, 3], [3, 2])
    task.next_epoch()
    assert task.backend.timers("t", EVENT).next_timestamp() is None
    assert entries_in(task) == 0


def test_a_timer_is_gone_before_it_fires_and_may_come_again(task: Subtask) -> None:
    timers = task.backend.timers("t", EVENT)
    timers.register(10, 1)
    task.next_epoch()
    timers = task.backend.timers("t", EVENT)
    seen = []
    for timer in timers.advance(20):
        seen.append(timer.timestamp)
        timers.delete(timer.timestamp, timer.key)
        if timer.timestamp == 10 and seen.count(10) < 3:
            timers.register(10, 1)
            timers.register(3, 1)
            timers.register(15, 1)
            timers.register(21, 1)
    assert seen == [10, 3, 10, 3, 10, 15]
    task.next_epoch()
    assert task.backend.timers("t", EVENT).next_timestamp() == 21


def test_names_and_domains_are_apart(task: Subtask) -> None:
    queues = [task.backend.timers(name, domain) for name in ("a", "b") for domain in TimeDomain]
    for number, queue in enumerate(queues):
        queue.register(number, 1)
    assert task.backend.timers("a", EVENT) is queues[0]
    task.next_epoch()
    queues = [task.backend.timers(name, domain) for name in ("a", "b") for domain in TimeDomain]
    assert [[timer.timestamp for timer in queue.advance(100)] for queue in queues] == [[0], [1], [2], [3]]


def test_namespaces(task: Subtask) -> None:
    windows = Types.TUPLE([Types.LONG(), Types.LONG()])
    timers = task.backend.timers("t", EVENT, windows)
    timers.register(5, 1, (0, 10))
    timers.register(5, 1, (10, 20))
    timers.register(5, 1)
    task.next_epoch()
    timers = task.backend.timers("t", EVENT, windows)
    timers.delete(5, 1, (10, 20))
    assert {timer.namespace for timer in timers.advance(5)} == {None, (0, 10)}
    plain = task.backend.timers("plain", EVENT)
    with pytest.raises(StateAccessError, match="without a type of namespaces"):
        plain.register(5, 1, (0, 10))


def test_timestamps_of_any_sign(task: Subtask) -> None:
    timers = task.backend.timers("t", EVENT)
    stamps = [-(2**63), -1, 0, 1, 2**63 - 1]
    for stamp in stamps[::-1]:
        timers.register(stamp, 1)
    task.next_epoch()
    timers = task.backend.timers("t", EVENT)
    assert [timer.timestamp for timer in timers.advance(2**63 - 1)] == stamps
    with pytest.raises(StateTypeError, match="64 bits"):
        timers.register(2**63, 1)


def test_finding_the_next_timer_does_not_read_the_others(task: Subtask) -> None:
    timers = task.backend.timers("t", EVENT)
    for key in range(5000):
        timers.register(key, key)
    task.next_epoch()
    timers = task.backend.timers("t", EVENT)
    read = 0
    scan = task.store.scan

    def counted(start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        nonlocal read
        for entry in scan(start, end):
            read += 1
            yield entry

    task.store.scan = counted
    assert timers.next_timestamp() == 0
    assert len(list(timers.advance(9))) == 10
    assert timers.next_timestamp() == 10
    assert read <= 300


def test_early_flushes_while_timers_fire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed_backend, "_EPOCH_CACHE", 20)
    for name in BACKENDS:
        task = Subtask(name, tmp_path / name, scope_of(), cache_limit=5)
        timers = task.backend.timers("t", EVENT)
        for key in range(100):
            timers.register(key % 10, key)
        task.next_epoch()
        timers = task.backend.timers("t", EVENT)
        state = task.backend.state(ValueStateDescriptor("v", "bigint"))
        fired = []
        for timer in timers.advance(10):
            fired.append(timer.timestamp)
            task.at(timer.key)
            state.update((state.value() or 0) + 1)
            if timer.timestamp < 10 and timer.key % 3 == 0:
                timers.register(10, timer.key)
        assert fired == sorted(fired)
        assert len(fired) == 134
        task.next_epoch()
        assert task.backend.timers("t", EVENT).next_timestamp() is None
        task.close()


@given(st.data())
@settings(max_examples=examples(40))
def test_timers_follow_a_model(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(BACKENDS))
    task = Subtask(name, tmp_path_factory.mktemp("timers"))
    timers = task.backend.timers("t", PROCESSING)
    model: set[tuple[int, int]] = set()
    #: What the store may have.
    stored: set[tuple[int, int]] = set()
    pairs = st.tuples(st.integers(-5, 5), st.integers(0, 5))
    kinds = st.sampled_from(["register", "register many", "delete", "advance", "advance together", "epoch", "flush"])
    for step, (timestamp, key) in data.draw(st.lists(st.tuples(kinds, pairs), max_size=40)):
        if step == "register":
            timers.register(timestamp, key)
            model.add((timestamp, key))
        elif step == "register many":
            keys = range(key)
            unstored = [one for one in keys if (timestamp, one) not in stored]
            timers.register_many(timestamp, {one: one for one in keys}, None, unstored)
            model.update((timestamp, one) for one in keys)
        elif step == "delete":
            timers.delete(timestamp, key)
            model.discard((timestamp, key))
        elif step.startswith("advance"):
            if step == "advance":
                fired = [(timer.timestamp, timer.key) for timer in timers.advance(timestamp)]
            else:
                together = timers.advance_together(timestamp, most=2)
                fired = [(at, one) for at, due in together for one, _ in due]
                entries = [timers._entry(at, one, None) for at, one in fired]
                assert entries == sorted(entries)
            gone = {one for one in model if one[0] <= timestamp}
            assert [one[0] for one in fired] == sorted(one[0] for one in gone)
            assert set(fired) == gone
            model -= gone
        elif step == "flush":
            task.backend.flush()
            stored = set(model)
        else:
            stored = set(model)
            task.next_epoch(cached=timestamp > 0)
            timers = task.backend.timers("t", PROCESSING)
        assert timers.next_timestamp() == min((one[0] for one in model), default=None)
        latest = max((one[0] for one in model), default=-10)
        assert all(timers.may_have(at, None) for at in range(-6, latest + 1))
        assert step != "epoch" or not timers.may_have(latest + 1, None)
    task.backend.flush()
    assert entries_in(task) == 2 * len(model)
    task.close()


@pytest.mark.parametrize("together", [False, True])
def test_a_timer_that_was_stored_all_the_same_is_removed(task: Subtask, together: bool) -> None:
    task.backend.timers("t", EVENT).register(5, 1)
    task.next_epoch()
    timers = task.backend.timers("t", EVENT)
    timers.register(5, 1, unstored=True)
    fired = list(timers.advance_together(5, most=10)) if together else list(timers.advance(5))
    assert len(fired) == 1
    task.next_epoch()
    assert entries_in(task) == 0


def test_timers_far_ahead_are_of_other_namespaces(task: Subtask) -> None:
    def timers() -> TimerQueue:
        return task.backend.timers("t", EVENT, Types.LONG())

    for key in range(20):
        timers().register(1000, key, namespace=7)
    assert timers().may_have(5, 1)
    task.next_epoch()
    assert not timers().may_have(5, 1)
    assert timers().may_have(5, 7)
    assert timers().may_have(1000, 1)
    timers().register(1001, 1, namespace=1)
    task.next_epoch()
    assert timers().may_have(5, 1)
    assert not timers().may_have(5, 2)
    for key in range(20):
        timers().register(1000, key, namespace=8)
    task.next_epoch()
    assert timers().may_have(5, 2)


def test_the_index_is_made_of_the_entries() -> None:
    stored = b"\x00\x07\x00\x02" + b"\x03key" + b"\x00" + b"12345678"
    index = index_entry(stored)
    assert index == b"\xff\xff\x00\x02" + b"12345678" + b"\x00\x07" + b"\x03key" + b"\x00"
    assert state_entry(index) == stored


def test_a_timer_that_is_deleted_and_registered_again_fires_once(task: Subtask) -> None:
    task.backend.timers("t", EVENT).register(100, 1)
    task.next_epoch()
    timers = task.backend.timers("t", EVENT)
    timers.delete(100, 1)
    assert timers.next_timestamp() is None, "it is read past"
    timers.register(100, 1)
    assert [timer.timestamp for timer in timers.advance(200)] == [100]
    task.next_epoch()
    assert list(task.backend.timers("t", EVENT).advance(300)) == []
    assert entries_in(task) == 0


def test_a_timer_that_registers_itself_once_more_fires_twice(task: Subtask) -> None:
    task.backend.timers("t", EVENT).register(100, 1)
    task.next_epoch()
    timers = task.backend.timers("t", EVENT)
    fired = []
    for timer in timers.advance(100):
        fired.append(timer.timestamp)
        if len(fired) == 1:
            timers.register(100, 1)
    assert fired == [100, 100]
    task.next_epoch()
    assert list(task.backend.timers("t", EVENT).advance(300)) == []


@pytest.mark.parametrize("stored", [False, True])
def test_a_timer_that_is_registered_and_deleted_is_gone_whether_it_was_stored_or_not(
    task: Subtask, stored: bool
) -> None:
    if stored:
        task.backend.timers("t", EVENT).register(100, 1)
    task.next_epoch()
    timers = task.backend.timers("t", EVENT)
    timers.register(100, 1)
    timers.delete(100, 1)
    assert timers.next_timestamp() is None
    task.next_epoch()
    assert list(task.backend.timers("t", EVENT).advance(300)) == []
    assert entries_in(task) == 0
