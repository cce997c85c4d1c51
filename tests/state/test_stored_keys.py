"""Walking over all keys that have a state, on every backend."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.state import keyed_backend, stored_keys
from holdfast.state.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from holdfast.state.key_table import NO_KEY
from holdfast.testing.contracts.keyed_subtask import scope_of
from holdfast.types.typeinfo import Types
from tests.state.backend_under_test import Subtask
from tests.state.stores import BACKENDS

VALUE = ValueStateDescriptor("value", Types.LONG())
LIST = ListStateDescriptor("list", Types.LONG())
MAP = MapStateDescriptor("map", Types.STRING(), Types.LONG())


@pytest.fixture(params=BACKENDS)
def task(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Subtask]:
    subtask = Subtask(request.param, tmp_path, scope_of("string"))
    yield subtask
    subtask.close()


def keys_with(task: Subtask, descriptor: Any) -> list[str]:
    found: list[str] = []
    task.backend.apply_to_all_keys(descriptor, lambda key, state: found.append(key))
    return sorted(found)


def put_everywhere(task: Subtask, *keys: str) -> None:
    for key in keys:
        task.at(key)
        task.backend.state(VALUE).update(1)
        task.backend.state(LIST).add_all([1, 2])
        task.backend.state(MAP).put_all({"x": 1, "y": 2})


@pytest.mark.parametrize("descriptor", [VALUE, LIST, MAP], ids=lambda descriptor: descriptor.kind)
def test_keys_that_have_the_state(task: Subtask, descriptor: Any) -> None:
    put_everywhere(task, "stored", "cleared later")
    task.next_epoch()
    put_everywhere(task, "cached", "cleared")
    for key in ("cleared", "cleared later", "never had one"):
        task.at(key)
        task.backend.state(descriptor).clear()
    task.at("only read")
    list(task.backend.state(MAP).items())
    assert keys_with(task, descriptor) == ["cached", "stored"]
    task.next_epoch(cached=True)
    assert keys_with(task, descriptor) == ["cached", "stored"]


def test_keys_of_other_states_and_namespaces_are_not_found(task: Subtask) -> None:
    spaced = task.backend.state(ValueStateDescriptor("spaced", Types.LONG()), Types.STRING())
    task.at("in a namespace")
    spaced.set_current_namespace("n")
    spaced.update(1)
    spaced.set_current_namespace(None)
    put_everywhere(task, "other state")
    task.backend.flush()
    (meta,) = (meta for meta in task.backend.states_meta() if meta.name == "spaced")
    found = stored_keys.stored_keys(task.store, task.scope.key_groups, meta.state_id, task.scope.key_codec)
    assert list(found) == []


def test_each_change_is_of_its_key_and_the_current_key_stays(task: Subtask) -> None:
    put_everywhere(task, "a", "b")
    task.at("a")
    task.backend.apply_to_all_keys(VALUE, lambda key, state: state.update(len(key) + state.value()))
    assert task.backend.context.key == "a"
    assert task.backend.state(VALUE).value() == 2
    task.backend.context.clear()
    with pytest.raises(ValueError, match="stop"):
        task.backend.apply_to_all_keys(VALUE, _stop)
    assert task.backend.context.identity is NO_KEY


def _stop(key: Any, state: Any) -> None:
    raise ValueError("stop")


def test_long_keys_pages_and_caches_that_overflow(task: Subtask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_keys, "_PAGE", 3)
    monkeypatch.setattr(keyed_backend, "_EPOCH_CACHE", 4)
    task.restart()
    # Keys of more than 464 equal bytes are not in order inside LMDB.
    keys = [f"{'long' * 150}{number}" for number in range(20)] + [f"short{number}" for number in range(30)]
    random.Random(3).shuffle(keys)
    model = {key: number for number, key in enumerate(keys)}
    for key, number in model.items():
        task.at(key)
        task.backend.state(MAP).put_all({"n": number, "m": 0})

    def change(key: str, state: Any) -> None:
        number = state.get("n")
        if number % 3 == 0:
            state.clear()
            del model[key]
        else:
            state.put("n", number + 100)
            model[key] += 100

    for _ in range(2):
        task.backend.apply_to_all_keys(MAP, change)
        assert keys_with(task, MAP) == sorted(model)
        task.next_epoch()
    for key, number in model.items():
        task.at(key)
        assert dict(task.backend.state(MAP).items()) == {"n": number, "m": 0}
