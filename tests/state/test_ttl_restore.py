"""A time to live that is switched on, off or changed over a restore, and restores onto other subtasks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import StateMigrationError
from holdfast.state.keyed_backend import KeyedScope
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.keys import KeyCodec
from holdfast.state.regrouping import Regrouping
from holdfast.state.restore import KeyedShare, restore_into
from holdfast.state.store import Stamp
from holdfast.testing.contracts.keyed_subtask import MAX_PARALLELISM, scope_of
from holdfast.types.resolve import resolve
from tests.state.backend_under_test import Subtask
from tests.state.expiring import KINDS, TTL, builder, content, descriptor, expected, put, restored, snapshot
from tests.state.snapshot_memory import MemoryFiles, chain
from tests.state.stores import BACKENDS, make_backend

KEEP = builder().disable_cleanup_in_background().build()
HALVES = [KeyGroupRange(0, MAX_PARALLELISM // 2 - 1), KeyGroupRange(MAX_PARALLELISM // 2, MAX_PARALLELISM - 1)]
KEYS = range(20)


@pytest.fixture(params=BACKENDS)
def task(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Subtask]:
    subtask = Subtask(request.param, tmp_path / "source")
    yield subtask
    subtask.close()


@pytest.fixture
def files() -> MemoryFiles:
    return MemoryFiles()


def fill(task: Subtask, kind: str, config: Any, keys: Any = KEYS, type_info: Any = "bigint") -> None:
    state = task.backend.state(descriptor(kind, config, type_info))
    for key in keys:
        task.at(key)
        put(state, kind, key)


def live(task: Subtask, kind: str, config: Any, keys: Any = KEYS, type_info: Any = "bigint") -> list[int]:
    """The keys that have a content, which must be what ``fill`` put."""
    state = task.backend.state(descriptor(kind, config, type_info))
    found = []
    for key in keys:
        task.at(key)
        seen = content(state, kind)
        assert seen in (None, expected(kind, key) or None)
        if seen is not None:
            found.append(key)
    return found


PRESENT = [key for key in KEYS if key]
ALWAYS = {"value": PRESENT, "reducing": PRESENT}


def everything(kind: str) -> list[int]:
    """All keys, but for the value 0, which ``content`` cannot tell from none."""
    return ALWAYS.get(kind, list(KEYS))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", BACKENDS)
def test_switched_on(task: Subtask, files: MemoryFiles, tmp_path: Path, kind: str, target: str) -> None:
    fill(task, kind, None)
    full = snapshot(task, files)
    task.advance(10 * TTL)
    again = restored(task, tmp_path / "target", [full], files, target)
    assert live(again, kind, KEEP) == everything(kind)
    again.next_epoch()
    again.advance(TTL - 1)
    assert live(again, kind, KEEP) == everything(kind), "they live as if accessed at the restore"
    again.next_epoch()
    again.advance(1)
    assert live(again, kind, KEEP) == []
    again.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", BACKENDS)
def test_switched_off(task: Subtask, files: MemoryFiles, tmp_path: Path, kind: str, target: str) -> None:
    fill(task, kind, KEEP)
    full = snapshot(task, files)
    again = restored(task, tmp_path / "target", [full], files, target)
    for _ in range(3):
        again.advance(10 * TTL)
        assert live(again, kind, None) == everything(kind), "what was not removed stays for good"
        again.next_epoch()
    again.close()


@pytest.mark.parametrize("kind", KINDS)
def test_switched_on_and_off_again(task: Subtask, files: MemoryFiles, tmp_path: Path, kind: str) -> None:
    """The restored jobs take deltas: what is rewritten is a change."""
    fill(task, kind, None)
    for number, config in enumerate([KEEP, None, KEEP]):
        full = snapshot(task, files)
        task.close()
        task = restored(task, tmp_path / str(number), [full], files)
        first = snapshot(task, files)
        base = task.commit().epoch
        task.backend.resume(task.stamp)
        assert live(task, kind, config) == everything(kind)
        both = chain(first, snapshot(task, files, base))
        task.close()
        task = restored(task, tmp_path / f"{number} again", [both], files)
        assert live(task, kind, config) == everything(kind)
    task.advance(TTL)
    assert live(task, kind, KEEP) == []
    task.close()


@pytest.mark.parametrize("kind", ["list", "map", "reducing", "value"])
@pytest.mark.parametrize(("old", "new"), [(None, KEEP), (KEEP, None), (KEEP, KEEP)], ids=["on", "off", "as it was"])
def test_with_a_type_that_changes(
    task: Subtask, files: MemoryFiles, tmp_path: Path, kind: str, old: Any, new: Any
) -> None:
    fill(task, kind, old, type_info="int")
    if kind == "map":
        task.at(1)
        task.backend.state(descriptor("map", old, "int")).put("entry 1", None)
    full = snapshot(task, files)
    again = restored(task, tmp_path / "target", [full], files)
    if kind == "map":
        again.at(1)
        state = again.backend.state(descriptor("map", new))
        assert dict(state.items()) == {"entry 1": None}
        state.put("entry 1", 1)
    assert live(again, kind, new) == everything(kind)
    if old is new:
        again.advance(TTL)
        assert live(again, kind, new) == [], "times of access are kept"
    again.close()


def test_a_type_that_cannot_change_is_refused(task: Subtask, files: MemoryFiles, tmp_path: Path) -> None:
    fill(task, "value", None)
    again = restored(task, tmp_path / "target", [snapshot(task, files)], files)
    with pytest.raises(StateMigrationError, match="State 'value' of operator 'counter'"):
        again.backend.state(descriptor("value", KEEP, "string"))
    again.close()


def test_another_duration_rewrites_nothing(task: Subtask, files: MemoryFiles, tmp_path: Path) -> None:
    fill(task, "value", KEEP)
    full = snapshot(task, files)
    again = restored(task, tmp_path / "target", [full], files)
    base = again.stamp.epoch
    again.advance(TTL // 2)
    shorter = builder(TTL // 2).disable_cleanup_in_background().build()
    again.backend.state(descriptor("value", shorter))
    changes = again.store.changes_since(base)
    assert changes is not None and changes.keys == [] and changes.ranges == ()
    assert live(again, "value", shorter) == []
    again.close()
    longer = builder(10 * TTL).build()
    task.advance(5 * TTL)
    again = restored(task, tmp_path / "longer", [full], files)
    assert live(again, "value", longer) == PRESENT
    again.close()


def test_state_that_nobody_asks_for_keeps_its_times(task: Subtask, files: MemoryFiles, tmp_path: Path) -> None:
    fill(task, "value", KEEP)
    between = restored(task, tmp_path / "between", [snapshot(task, files)], files)
    between.advance(TTL // 2)
    between.next_epoch()
    again = restored(between, tmp_path / "target", [snapshot(between, files)], files)
    assert live(again, "value", KEEP) == PRESENT
    again.advance(TTL // 2)
    assert live(again, "value", KEEP) == []
    for one in (between, again):
        one.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wanted", [KEEP, None], ids=["on", "off"])
@pytest.mark.parametrize("first", [True, False])
def test_subtasks_of_which_one_has_asked_for_it(
    task: Subtask, files: MemoryFiles, tmp_path: Path, kind: str, wanted: Any, first: bool
) -> None:
    """A state is rewritten when it is asked for: where a function does that late, some subtasks have and others not."""
    codec = task.scope.key_codec
    snapshots = []
    for number, key_groups in enumerate(HALVES):
        half = Subtask(task.name, tmp_path / f"old {number}", scope_of(key_groups=key_groups), clock=task.clock)
        mine = [key for key in KEYS if codec.hash(key) % MAX_PARALLELISM in key_groups]
        fill(half, kind, KEEP if (number == 0) is first else None, mine)
        snapshots.append(snapshot(half, files))
        half.close()
    task.advance(TTL - 1)
    again = restored(task, tmp_path / "target", snapshots, files)
    assert live(again, kind, wanted) == everything(kind)
    again.next_epoch()
    again.advance(1)
    bare = HALVES[1 if first else 0]
    left = [key for key in everything(kind) if wanted is None or codec.hash(key) % MAX_PARALLELISM in bare]
    assert live(again, kind, wanted) == left, "those without a time got that of the restore"
    again.close()


@pytest.mark.parametrize("kind", KINDS)
def test_rescaled(task: Subtask, files: MemoryFiles, tmp_path: Path, kind: str) -> None:
    codec = task.scope.key_codec
    fill(task, kind, KEEP)
    full = snapshot(task, files)
    task.advance(TTL - 1)
    found = []
    for number, key_groups in enumerate(HALVES):
        scope = scope_of(key_groups=key_groups)
        mine = [key for key in KEYS if codec.hash(key) % MAX_PARALLELISM in key_groups]
        again = restored(task, tmp_path / str(number), [full], files, scope=scope)
        found += live(again, kind, KEEP, mine)
        again.close()
    assert sorted(found) == everything(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_another_maximum_parallelism(task: Subtask, files: MemoryFiles, tmp_path: Path, kind: str) -> None:
    fill(task, kind, KEEP)
    full = snapshot(task, files)
    codec = KeyCodec.for_type(resolve("bigint"))
    scope = KeyedScope("counter", codec, KeyGroupRange(0, 49), 50)
    store = make_backend(task.name).open(tmp_path / "target")
    restore_into(store, KeyedShare.of([full], scope.key_groups, Regrouping(codec, 50)), files, Stamp(1, "r"))
    store.close()
    again = Subtask(task.name, tmp_path / "target", scope, clock=task.clock)
    again.advance(TTL - 1)
    assert live(again, kind, KEEP) == everything(kind)
    again.advance(1)
    assert live(again, kind, KEEP) == []
    again.close()
