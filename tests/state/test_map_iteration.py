"""A map that changes while it is iterated: the iteration gives it as it was, on every backend and at every size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.state import keyed_backend
from holdfast.state.descriptors import MapStateDescriptor, ValueStateDescriptor
from holdfast.types.typeinfo import Types
from tests.state.backend_under_test import Subtask
from tests.state.stores import BACKENDS

MAP = MapStateDescriptor("map", Types.LONG(), Types.LONG())
OTHER = ValueStateDescriptor("other", Types.LONG())
#: Within what is kept whole in the cache, and beyond.
SIZES = (3, 200, 1_000)


@pytest.fixture(params=BACKENDS)
def task(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Subtask]:
    """Its caches take few entries, so that they are emptied in the middle of an iteration."""
    monkeypatch.setattr(keyed_backend, "_EPOCH_CACHE", 50)
    subtask = Subtask(request.param, tmp_path, cache_limit=50)
    yield subtask
    subtask.close()


def _add_behind(state: Any, key: int) -> None:
    state.put(key + 10_000, key)


def _remove_the_next(state: Any, key: int) -> None:
    state.remove(key + 1)


def _change_the_next(state: Any, key: int) -> None:
    state.put(key + 1, -1)


def _clear(state: Any, key: int) -> None:
    state.clear()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("change", [_add_behind, _remove_the_next, _change_the_next, _clear])
def test_an_iteration_gives_the_map_as_it_was(
    task: Subtask, size: int, cached: bool, change: Callable[[Any, int], None]
):
    task.at(1)
    content = {key: key * 2 for key in range(size)}
    task.backend.state(MAP).put_all(content)
    task.next_epoch(cached=cached)
    task.at(1)
    state, other = task.backend.state(MAP), task.backend.state(OTHER)
    found = {}
    for key, value in state.items():
        found[key] = value
        change(state, key)
        # Other states fill the caches, too.
        task.at(key + 2)
        other.update(key)
        task.at(1)
    assert found == content


@pytest.mark.parametrize("size", SIZES)
def test_it_begins_when_it_is_asked_for(task: Subtask, size: int):
    task.at(1)
    task.backend.state(MAP).put_all({key: key for key in range(size)})
    task.next_epoch(cached=False)
    task.at(1)
    state = task.backend.state(MAP)
    items = state.items()
    state.put(-1, -1)
    state.remove(0)
    assert sorted(items) == [(key, key) for key in range(size)]
    assert sorted(state.keys()) == [-1, *range(1, size)]
