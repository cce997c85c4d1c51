"""Keyed states against plain dicts: any order of operations, epochs, failures, early flushes and lost caches."""

from __future__ import annotations

import copy
import shutil
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from holdfast.state.descriptors import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from holdfast.testing.contracts.keyed_subtask import scope_of
from tests.kit.properties import examples
from tests.state.backend_under_test import Subtask
from tests.state.stores import BACKENDS

WINDOW = "bigint"
DESCRIPTORS = {
    "value": ValueStateDescriptor("value", "bigint"),
    "pickled": ValueStateDescriptor("pickled", None),
    "list": ListStateDescriptor("list", "string"),
    "map": MapStateDescriptor("map", "string", "bigint"),
    "reducing": ReducingStateDescriptor("reducing", lambda left, right: left + right, "bigint"),
}

_keys = st.one_of(st.integers(0, 3), st.sampled_from(["k", "long " * 120]))
_spaces = st.sampled_from([None, None, 1, 2])
_small = st.integers(-3, 3)
_words = st.sampled_from(["a", "b", "c", "another long word " * 40])


class StatesMachine(RuleBasedStateMachine):
    """``model`` maps (state, key, namespace) to what is there; ``committed`` is its copy of the last commit."""

    name = "set by the subclass"

    @initialize(cache_limit=st.sampled_from([None, 0, 3]))
    def start(self, cache_limit: int | None) -> None:
        self.directory = Path(tempfile.mkdtemp())
        self.task = Subtask(self.name, self.directory, scope_of(key_type=None), cache_limit)
        self.model: dict[str, dict[Any, Any]] = defaultdict(dict)
        self.committed: dict[str, dict[Any, Any]] = defaultdict(dict)

    def teardown(self) -> None:
        if hasattr(self, "task"):
            self.task.close()
            shutil.rmtree(self.directory)

    def state(self, kind: str, key: Any, space: Any) -> Any:
        state = self.task.backend.state(DESCRIPTORS[kind], WINDOW)
        self.task.at(key)
        state.set_current_namespace(space)
        return state

    @rule(key=_keys, space=_spaces, value=st.one_of(st.none(), _small))
    def update(self, key: Any, space: Any, value: int | None) -> None:
        self.state("value", key, space).update(value)
        self.model["value"][key, space] = value

    @rule(key=_keys, space=_spaces, value=st.lists(_small, max_size=2))
    def update_pickled(self, key: Any, space: Any, value: list[int]) -> None:
        self.state("pickled", key, space).update(value)
        self.model["pickled"][key, space] = list(value)
        value.append(99)

    @rule(key=_keys, space=_spaces, value=_words, several=st.booleans())
    def add(self, key: Any, space: Any, value: str, several: bool) -> None:
        values = [value, "more"] if several else [value]
        state = self.state("list", key, space)
        if several:
            state.add_all(values)
        else:
            state.add(value)
        self.model["list"].setdefault((key, space), []).extend(values)

    @rule(key=_keys, space=_spaces, values=st.lists(_words, max_size=3))
    def replace(self, key: Any, space: Any, values: list[str]) -> None:
        self.state("list", key, space).update(values)
        self.model["list"][key, space] = list(values)

    @rule(key=_keys, space=_spaces, entry=_words, value=st.one_of(st.none(), _small))
    def put(self, key: Any, space: Any, entry: str, value: int | None) -> None:
        self.state("map", key, space).put(entry, value)
        self.model["map"].setdefault((key, space), {})[entry] = value

    @rule(key=_keys, space=_spaces, entry=_words)
    def remove(self, key: Any, space: Any, entry: str) -> None:
        self.state("map", key, space).remove(entry)
        self.model["map"].setdefault((key, space), {}).pop(entry, None)

    @rule(key=_keys, space=_spaces, entry=_words)
    def look_up(self, key: Any, space: Any, entry: str) -> None:
        expected = self.model["map"].get((key, space), {})
        state = self.state("map", key, space)
        assert state.get(entry) == expected.get(entry)
        assert state.contains(entry) == (entry in expected)
        assert state.is_empty() == (not expected)

    @rule(key=_keys, space=_spaces, value=_small)
    def reduce(self, key: Any, space: Any, value: int) -> None:
        self.state("reducing", key, space).add(value)
        known = self.model["reducing"].get((key, space))
        self.model["reducing"][key, space] = value if known is None else known + value

    @rule(key=_keys, space=_spaces, kind=st.sampled_from(sorted(DESCRIPTORS)))
    def clear(self, key: Any, space: Any, kind: str) -> None:
        self.state(kind, key, space).clear()
        self.model[kind].pop((key, space), None)

    @rule(key=_keys, kind=st.sampled_from(["list", "reducing"]))
    def merge(self, key: Any, kind: str) -> None:
        self.state(kind, key, None).merge_namespaces(1, [2, None])
        model = self.model[kind]
        parts = [model.pop((key, space), None) for space in (1, 2, None)]
        for part in parts:
            if part is not None:
                known = model.get((key, 1))
                model[key, 1] = part if known is None else known + part

    @rule(key=_keys, space=_spaces)
    def read(self, key: Any, space: Any) -> None:
        assert self.state("value", key, space).value() == self.model["value"].get((key, space))
        assert self.state("pickled", key, space).value() == self.model["pickled"].get((key, space))
        assert self.state("reducing", key, space).get() == self.model["reducing"].get((key, space))
        assert self.state("list", key, space).get() == self.model["list"].get((key, space), [])
        assert dict(self.state("map", key, space).items()) == self.model["map"].get((key, space), {})

    @rule()
    def flush(self) -> None:
        self.task.backend.flush()

    @rule()
    def spill(self) -> None:
        self.task.backend._spill()

    @rule(cached=st.booleans())
    def next_epoch(self, cached: bool) -> None:
        self.task.next_epoch(cached)
        self.committed = copy.deepcopy(self.model)

    @rule()
    def fail(self) -> None:
        self.task.restart()
        self.model = copy.deepcopy(self.committed)

    @invariant()
    def all_is_there(self) -> None:
        if hasattr(self, "model"):
            for kind in DESCRIPTORS:
                for key, space in self.model[kind]:
                    self.read(key, space)


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("checked", ["always", "sometimes"])
def test_states_follow_the_model(name: str, checked: str) -> None:
    changes: dict[str, Any] = {"name": name}
    if checked == "sometimes":
        # Reading fills caches: without the invariant, what was never read is written, too.
        changes["all_is_there"] = None
    machine = type("Machine", (StatesMachine,), changes)
    machine.TestCase.settings = settings(max_examples=examples(25), stateful_step_count=30, deadline=None)
    machine.TestCase().runTest()
