"""States with a time to live against plain dicts with a clock: epochs, failures, checkpoints, restores, and the time to
live switched off and on again.
"""

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
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from holdfast.state.stored_keys import stored_keys
from holdfast.state.ttl_cells import deadline
from holdfast.testing.contracts.keyed_subtask import scope_of
from tests.kit.properties import examples
from tests.state.backend_under_test import Subtask
from tests.state.expiring import KINDS, TTL, builder, descriptor, restored, snapshot
from tests.state.snapshot_memory import MemoryFiles, chain
from tests.state.stores import BACKENDS

WINDOW = "bigint"

_keys = st.one_of(st.integers(0, 2), st.sampled_from(["k", "long " * 120]))
_spaces = st.sampled_from([None, None, 1, 2])
_small = st.integers(-3, 3)
_words = st.sampled_from(["a", "b", "another long word " * 40])
_cleanups = st.sampled_from(
    [
        lambda config: config,
        lambda config: config.cleanup_full_snapshot(),
        lambda config: config.cleanup_incrementally(1, True).cleanup_full_snapshot(),
        lambda config: config.disable_cleanup_in_background(),
    ]
)


class TtlMachine(RuleBasedStateMachine):
    """``model`` maps kind, then (key, namespace), to parts: entry (None but in maps) and value, with the time of its
    last access. Parts stay when they expire, since the state may keep them too.
    """

    name = "set by the subclass"

    @initialize(cache_limit=st.sampled_from([None, 0, 3]), renews=st.booleans(), cleanup=_cleanups)
    def start(self, cache_limit: int | None, renews: bool, cleanup: Any) -> None:
        self.root = Path(tempfile.mkdtemp())
        self.files = MemoryFiles()
        self.task = Subtask(self.name, self.root / "0", scope_of(key_type=None), cache_limit)
        self.renews = renews
        config = cleanup(builder().update_ttl_on_read_and_write() if renews else builder()).build()
        self.configs = dict.fromkeys(KINDS, config)
        self.descriptors = {kind: descriptor(kind, config) for kind in KINDS}
        self.model: dict[str, Any] = {kind: defaultdict(list) for kind in KINDS}
        self.committed = copy.deepcopy(self.model)
        self.checkpoint: Any = None
        self.restores = 0

    def teardown(self) -> None:
        if hasattr(self, "task"):
            self.task.close()
            shutil.rmtree(self.root)

    # The model

    def expires(self, kind: str) -> bool:
        return self.descriptors[kind].ttl_config is not None

    def expired(self, kind: str, part: Any) -> bool:
        return self.expires(kind) and part[2] + TTL <= self.task.clock()

    def present(self, kind: str, place: Any) -> list[Any]:
        """The parts that have not expired."""
        return [part for part in self.model[kind][place] if not self.expired(kind, part)]

    def touch(self, kind: str, place: Any) -> list[Any]:
        """The parts that have not expired, as a read leaves them."""
        if self.renews and self.expires(kind):
            self.model[kind][place] = [
                part if self.expired(kind, part) else (*part[:2], self.task.clock()) for part in self.model[kind][place]
            ]
        return self.present(kind, place)

    def write(self, kind: str, place: Any, entry: Any, value: Any) -> None:
        self.model[kind][place].append((entry, value, self.task.clock()))

    # Operations

    def state(self, kind: str, key: Any, space: Any) -> Any:
        state = self.task.backend.state(self.descriptors[kind], WINDOW)
        self.task.at(key)
        state.set_current_namespace(space)
        return state

    @rule(milliseconds=st.sampled_from([1, 30, 60, TTL - 1, TTL, TTL + 1]))
    def time_goes_on(self, milliseconds: int) -> None:
        self.task.advance(milliseconds)

    @rule(key=_keys, space=_spaces, value=_small)
    def update(self, key: Any, space: Any, value: int) -> None:
        self.state("value", key, space).update(value)
        self.model["value"][key, space] = []
        self.write("value", (key, space), None, value)

    @rule(key=_keys, space=_spaces, values=st.lists(_small, min_size=1, max_size=2))
    def add(self, key: Any, space: Any, values: list[int]) -> None:
        state = self.state("list", key, space)
        state.add(values[0])
        state.add_all(values[1:])
        for value in values:
            self.write("list", (key, space), None, value)

    @rule(key=_keys, space=_spaces, values=st.lists(_small, max_size=3))
    def replace(self, key: Any, space: Any, values: list[int]) -> None:
        self.state("list", key, space).update(values)
        self.model["list"][key, space] = []
        for value in values:
            self.write("list", (key, space), None, value)

    @rule(key=_keys, space=_spaces, entry=_words, value=st.one_of(st.none(), _small))
    def put(self, key: Any, space: Any, entry: str, value: int | None) -> None:
        self.state("map", key, space).put(entry, value)
        self.drop_entry(key, space, entry)
        self.write("map", (key, space), entry, value)

    @rule(key=_keys, space=_spaces, entry=_words)
    def remove(self, key: Any, space: Any, entry: str) -> None:
        self.state("map", key, space).remove(entry)
        self.drop_entry(key, space, entry)

    def drop_entry(self, key: Any, space: Any, entry: str) -> None:
        self.model["map"][key, space] = [part for part in self.model["map"][key, space] if part[0] != entry]

    @rule(key=_keys, space=_spaces, entry=_words, test=st.booleans())
    def look_up(self, key: Any, space: Any, entry: str, test: bool) -> None:
        found = [part for part in self.present("map", (key, space)) if part[0] == entry]
        state = self.state("map", key, space)
        if test:
            assert state.contains(entry) == bool(found)
        else:
            assert state.get(entry) == (found[0][1] if found else None)
        if found and self.renews and self.expires("map"):
            self.drop_entry(key, space, entry)
            self.write("map", (key, space), entry, found[0][1])

    @rule(key=_keys, space=_spaces, value=_small, kind=st.sampled_from(["reducing", "aggregating"]))
    def combine(self, key: Any, space: Any, value: int, kind: str) -> None:
        self.state(kind, key, space).add(value)
        known = [part[1] for part in self.present(kind, (key, space))]
        self.model[kind][key, space] = []
        first = value if kind == "reducing" else (value, 1)
        self.write(kind, (key, space), None, self.combined(kind, [*known, first]))

    def combined(self, kind: str, values: list[Any]) -> Any:
        return sum(values) if kind == "reducing" else tuple(map(sum, zip(*values, strict=True)))

    @rule(key=_keys, space=_spaces, kind=st.sampled_from(KINDS))
    def clear(self, key: Any, space: Any, kind: str) -> None:
        self.state(kind, key, space).clear()
        self.model[kind].pop((key, space), None)

    @rule(key=_keys)
    def merge_lists(self, key: Any) -> None:
        self.state("list", key, None).merge_namespaces(1, [2, None])
        for space in (2, None):
            self.model["list"][key, 1] += self.touch("list", (key, space))
            self.model["list"][key, space] = []

    @rule(key=_keys, kind=st.sampled_from(["reducing", "aggregating"]))
    def merge_values(self, key: Any, kind: str) -> None:
        self.state(kind, key, None).merge_namespaces(1, [2, None])
        sources = [part[1] for space in (2, None) for part in self.present(kind, (key, space))]
        target = [part[1] for part in self.present(kind, (key, 1))]
        self.model[kind][key, 2], self.model[kind][key, None] = [], []
        if sources:
            self.model[kind][key, 1] = []
            self.write(kind, (key, 1), None, self.combined(kind, [*target, *sources]))

    @rule(key=_keys, space=_spaces)
    def read(self, key: Any, space: Any) -> None:
        for kind in KINDS:
            found = [part[:2] for part in self.touch(kind, (key, space))]
            assert self.content(kind, key, space) == found, kind

    def content(self, kind: str, key: Any, space: Any) -> list[Any]:
        """What the state gives, as parts; entries of a map in the order of the model."""
        state = self.state(kind, key, space)
        if kind == "map":
            entries = dict(state.items())
            order = [part[0] for part in self.model["map"][key, space]]
            assert set(entries) <= set(order)
            return [(entry, entries[entry]) for entry in order if entry in entries]
        if kind == "list":
            return [(None, value) for value in state.get()]
        value = state.value() if kind == "value" else state._get()
        return [] if value is None else [(None, value)]

    @rule(kind=st.sampled_from(KINDS))
    def walk_over_keys(self, kind: str) -> None:
        self.state(kind, 0, None)
        backend, config = self.task.backend, self.descriptors[kind].ttl_config
        backend.flush()
        (state_id,) = [meta.state_id for meta in backend.states_meta() if meta.name == kind]
        expired_at = None if config is None else deadline(config, self.task.clock())
        scope = self.task.scope
        found = list(stored_keys(self.task.store, scope.key_groups, state_id, scope.key_codec, expired_at))
        assert len(found) == len(set(found))
        places = list(self.model[kind])
        assert set(found) == {key for key, space in places if space is None and self.present(kind, (key, None))}

    # Epochs and restores

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

    @rule(full=st.booleans(), cached=st.booleans())
    def take_checkpoint(self, full: bool, cached: bool) -> None:
        if full or self.checkpoint is None:
            found = snapshot(self.task, self.files)
        else:
            found = chain(self.checkpoint[1], snapshot(self.task, self.files, self.checkpoint[0]))
        self.next_epoch(cached)
        self.checkpoint = self.task.stamp.epoch, found, copy.deepcopy(self.model), dict(self.descriptors)

    @precondition(lambda self: self.checkpoint is not None)
    @rule(backend=st.sampled_from(BACKENDS), switched=st.sets(st.sampled_from(KINDS)))
    def restore(self, backend: str, switched: set[str]) -> None:
        """Go back to the last checkpoint, with some states that get or lose their time to live."""
        _, found, model, before = self.checkpoint
        self.task.close()
        self.restores += 1
        self.task = restored(self.task, self.root / str(self.restores), [found], self.files, backend)
        self.checkpoint = None
        self.model = copy.deepcopy(model)
        self.descriptors = dict(before)
        for kind in switched:
            config = None if before[kind].ttl_config is not None else self.configs[kind]
            self.descriptors[kind] = descriptor(kind, config)
        for kind in KINDS:
            # As open() does. A state that is asked for later is rewritten later.
            self.state(kind, 0, None)
        for kind in switched:
            self.switch(kind)
        self.next_epoch(cached=True)

    def switch(self, kind: str) -> None:
        for (key, space), parts in list(self.model[kind].items()):
            now = self.task.clock()
            if self.expires(kind):
                self.model[kind][key, space] = [(entry, value, now) for entry, value, _ in parts]
                continue
            # What had expired and was not removed stays, and nobody can say what that is.
            found = self.content(kind, key, space)
            kept = [part for part in parts if part[2] + TTL > now]
            assert set(found) >= {part[:2] for part in kept}
            assert in_order(found, [part[:2] for part in parts])
            self.model[kind][key, space] = [(*part, now) for part in found]

    @invariant()
    def all_is_there(self) -> None:
        if hasattr(self, "model"):
            for key, space in {place for kind in KINDS for place in self.model[kind]}:
                self.read(key, space)


def in_order(some: list[Any], of: list[Any]) -> bool:
    rest = iter(of)
    return all(part in rest for part in some)


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("checked", ["always", "sometimes"])
def test_expiring_states_follow_the_model(name: str, checked: str) -> None:
    changes: dict[str, Any] = {"name": name}
    if checked == "sometimes":
        # Reading removes what has expired, and may renew the rest: without the invariant both happen less often.
        changes["all_is_there"] = None
    machine = type("Machine", (TtlMachine,), changes)
    machine.TestCase.settings = settings(max_examples=examples(40), stateful_step_count=40, deadline=None)
    machine.TestCase().runTest()
