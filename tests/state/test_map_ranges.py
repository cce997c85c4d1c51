"""Ranges of map states, against dicts: small maps and large ones, cached and stored, over epochs and failures."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Time
from holdfast.state.descriptors import MapStateDescriptor
from holdfast.state.ttl_config import StateTtlConfig
from tests.state.backend_under_test import Subtask
from tests.state.stores import BACKENDS

TIMES = MapStateDescriptor("times", "bigint", "bigint")
LEAST, MOST = -(1 << 63), (1 << 63) - 1


def between(model: dict[int, int], first: int, last: int) -> list[tuple[int, int]]:
    return sorted((key, value) for key, value in model.items() if first <= key <= last)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("span", "cache_limit"), [(100, None), (100, 0), (4_000, None), (4_000, 500)])
def test_any_order_of_changes_and_reads(backend: str, span: int, cache_limit: int | None, tmp_path: Path) -> None:
    chance = random.Random(span)
    task = Subtask(backend, tmp_path, cache_limit=cache_limit)
    models: dict[str, dict[int, int]] = {"a": {}, "b": {}}
    committed: dict[str, dict[int, int]] = {"a": {}, "b": {}}
    for _ in range(3_000):
        key = chance.choice("ab")
        state, model = task.backend.state(TIMES), models[key]
        task.at(ord(key))
        time = chance.randrange(-span // 2, span // 2)
        step = chance.random()
        if step < 0.55:
            state.put(time, time * 2)
            model[time] = time * 2
        elif step < 0.7:
            state.remove(time)
            model.pop(time, None)
        elif step < 0.98:
            last = time + chance.randrange(span // 10)
            assert state.between(time, last) == between(model, time, last)
        elif step < 0.985:
            state.clear()
            model.clear()
        elif step < 0.995:
            task.next_epoch(cached=chance.random() < 0.5)
            committed = {name: dict(each) for name, each in models.items()}
        else:
            task.backend.store.rollback()
            task.restart()
            models = {name: dict(each) for name, each in committed.items()}
    for key, model in models.items():
        task.at(ord(key))
        assert task.backend.state(TIMES).between(LEAST, MOST) == sorted(model.items())
    task.close()


class CountingStore:
    """Counts the entries that are read."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.read = 0

    def scan(self, start: bytes, end: bytes) -> Any:
        for entry in self._store.scan(start, end):
            self.read += 1
            yield entry

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def test_a_range_of_a_large_map_reads_no_more_than_it_gives(tmp_path: Path) -> None:
    task = Subtask("lmdb", tmp_path)
    task.at(1)
    task.backend.state(TIMES).put_all({time: time for time in range(10_000)})
    task.next_epoch()
    task.at(1)
    state = task.backend.state(TIMES)
    assert len(state.between(0, 0)) == 1
    counting = state._store = CountingStore(state._store)
    for first in range(0, 10_000, 100):
        assert [time for time, _ in state.between(first, first + 5)] == list(range(first, first + 6))
    assert counting.read == 600
    task.close()


def test_with_a_time_to_live_what_has_expired_is_not_in_the_range(tmp_path: Path) -> None:
    descriptor = MapStateDescriptor("times", "bigint", "bigint")
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.milliseconds(100)).build())
    task = Subtask("heap", tmp_path)
    task.at(1)
    state = task.backend.state(descriptor)
    state.put(1, 10)
    task.advance(60)
    task.at(1)
    state.put(2, 20)
    task.advance(60)
    task.at(1)
    assert state.between(0, 9) == [(2, 20)]
    task.close()
