"""Another maximum parallelism: every key keeps its state and its timers, wherever its key group is now."""

from __future__ import annotations

import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.state.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from holdfast.state.handles import CheckpointRequest, KeyedSnapshot, SnapshotType
from holdfast.state.keyed_backend import KeyedScope
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.keys import KeyCodec
from holdfast.state.regrouping import Regrouping
from holdfast.state.restore import KeyedShare, restore_into
from holdfast.state.snapshots import async_write, sync_prepare
from holdfast.state.store import Stamp
from holdfast.state.timers import TimeDomain
from holdfast.types.resolve import resolve
from tests.kit.properties import examples
from tests.state.backend_under_test import Subtask
from tests.state.snapshot_memory import MemoryFiles, chain
from tests.state.stores import BACKENDS, make_backend

VALUE = ValueStateDescriptor("value", "string")
ENTRIES = MapStateDescriptor("map", "bigint", "string")
ELEMENTS = ListStateDescriptor("list", "string")

_KEYS: dict[Any, st.SearchStrategy[Any]] = {
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=600),
    "double": st.floats(),
    "decimal(20, 3)": st.integers(-(10**15), 10**15).map(lambda n: Decimal(n).scaleb(-3)),
    None: st.one_of(st.integers(), st.booleans(), st.text(max_size=5), st.tuples(st.integers(0, 9), st.text("ab"))),
}


class Layout(NamedTuple):
    max_parallelism: int
    parallelism: int

    def scope(self, codec: KeyCodec, subtask: int) -> KeyedScope:
        key_groups = KeyGroupRange.of(subtask, self.max_parallelism, self.parallelism)
        return KeyedScope("counter", codec, key_groups, self.max_parallelism)


_layouts = st.integers(1, 400).flatmap(lambda m: st.builds(Layout, st.just(m), st.integers(1, min(m, 4))))


@st.composite
def _keyed(draw: st.DrawFn) -> tuple[KeyCodec, list[Any]]:
    key_type = draw(st.sampled_from(list(_KEYS)))
    codec = KeyCodec.for_type(None if key_type is None else resolve(key_type))
    return codec, draw(st.lists(_KEYS[key_type], max_size=25, unique_by=codec.encode))


def state_of(task: Subtask, key: Any) -> tuple[Any, dict[int, str], list[str]]:
    task.at(key)
    value, entries, elements = (task.backend.state(one) for one in (VALUE, ENTRIES, ELEMENTS))
    return value.value(), dict(entries.items()), list(elements.get() or ())


def change(task: Subtask, number: int, key: Any) -> None:
    task.at(key)
    value, entries, elements = (task.backend.state(one) for one in (VALUE, ENTRIES, ELEMENTS))
    if number % 3:
        value.update(f"value {number}")
    entries.put_all({number: "entry", -1: "x"})
    elements.add(f"element {number}")
    for domain in TimeDomain:
        task.backend.timers("t", domain).register(number * (1 + domain.value), key)


def unchange(task: Subtask, number: int, key: Any) -> None:
    task.at(key)
    task.backend.state(VALUE).clear()
    task.backend.state(ENTRIES).remove(-1)
    task.backend.timers("t", TimeDomain.EVENT_TIME).delete(number, key)


def snapshot(task: Subtask, files: MemoryFiles, number: int, base: int | None = None) -> KeyedSnapshot:
    request = CheckpointRequest(number, SnapshotType.CHECKPOINT, 0, 1, task.stamp.epoch + 1, base)
    return async_write(sync_prepare(task.backend, request, "counter", 0), files, f"keyed-{number}")


class Content(NamedTuple):
    """What all subtasks of an operator hold: the state of each key, and the timers."""

    states: dict[bytes, Any]
    timers: list[tuple[str, int, bytes]]


def content(tasks: list[Subtask], keys: list[Any], codec: KeyCodec) -> Content:
    found: dict[bytes, Any] = {}
    timers: list[tuple[str, int, bytes]] = []
    for task in tasks:
        for key in keys:
            if codec.hash(key) % task.scope.max_parallelism in task.scope.key_groups:
                assert codec.encode(key) not in found, "a key has one subtask"
                found[codec.encode(key)] = state_of(task, key)
        for domain in TimeDomain:
            due = task.backend.timers("t", domain).advance(10**9)
            timers += [(domain.name, timer.timestamp, codec.encode(timer.key)) for timer in due]
    return Content(found, sorted(timers))


def restored(
    name: str, root: Path, found: list[KeyedSnapshot], files: MemoryFiles, codec: KeyCodec, old: Layout, new: Layout
) -> list[Subtask]:
    tasks = []
    regrouping = Regrouping(codec, new.max_parallelism) if old.max_parallelism != new.max_parallelism else None
    for subtask in range(new.parallelism):
        scope, directory = new.scope(codec, subtask), root / str(subtask)
        store = make_backend(name).open(directory)
        restore_into(store, KeyedShare.of(found, scope.key_groups, regrouping), files, Stamp(3, "restored"))
        store.close()
        tasks.append(Subtask(name, directory, scope))
    return tasks


def run_old(
    name: str, root: Path, files: MemoryFiles, codec: KeyCodec, keys: list[Any], layout: Layout
) -> tuple[list[KeyedSnapshot], Content]:
    """An image with a delta behind it, in which some keys lost something, and what both make up."""
    tasks = [Subtask(name, root / str(n), layout.scope(codec, n)) for n in range(layout.parallelism)]
    snapshots = []
    for task in tasks:
        mine = [
            (n, key) for n, key in enumerate(keys) if codec.hash(key) % layout.max_parallelism in task.scope.key_groups
        ]
        for number, key in mine:
            change(task, number, key)
        image = snapshot(task, files, 1)
        task.next_epoch()
        for number, key in mine:
            if number % 4 == 0:
                unchange(task, number, key)
        snapshots.append(chain(image, snapshot(task, files, 2, task.stamp.epoch)))
        task.next_epoch()
    expected = content(tasks, keys, codec)
    for task in tasks:
        task.close()
    return snapshots, expected


@settings(max_examples=examples(40))
@given(keyed=_keyed(), old=_layouts, new=_layouts, later=st.integers(1, 4), name=st.sampled_from(BACKENDS))
def test_states_and_timers_follow_their_keys(
    keyed: tuple[KeyCodec, list[Any]], old: Layout, new: Layout, later: int, name: str
) -> None:
    codec, keys = keyed
    rescaled = Layout(new.max_parallelism, min(later, new.max_parallelism))
    with tempfile.TemporaryDirectory() as directory:
        root, files = Path(directory), MemoryFiles()
        found, expected = run_old(name, root / "old", files, codec, keys, old)
        assert len(expected.states) == len(keys)
        tasks = restored(name, root / "new", found, files, codec, old, new)
        images = [snapshot(task, files, 3) for task in tasks]
        assert content(tasks, keys, codec) == expected
        for task in tasks:
            task.close()
        # What is written now is in the new key groups: it is rescaled by ranges as ever.
        tasks = restored(name, root / "rescaled", images, files, codec, new, rescaled)
        assert content(tasks, keys, codec) == expected
        for task in tasks:
            task.close()


def test_regrouping_reads_everything_where_a_range_is_read_in_part(tmp_path: Path) -> None:
    codec, files = KeyCodec.for_type(resolve("bigint")), MemoryFiles()
    task = Subtask("heap", tmp_path / "old", Layout(128, 1).scope(codec, 0))
    for number in range(20_000):
        task.at(number)
        task.backend.state(VALUE).update(f"{number * 7919}")
    image = snapshot(task, files, 1)
    task.close()
    size = sum(file.handle.size for file in image.files)

    def bytes_read(regrouping: Regrouping | None) -> int:
        files.bytes_read = 0
        store = make_backend("heap").open(tmp_path / "new")
        restore_into(store, KeyedShare.of([image], KeyGroupRange(0, 49), regrouping), files, Stamp(1, "r"))
        store.close()
        return files.bytes_read

    assert bytes_read(None) < 0.45 * size
    assert bytes_read(Regrouping(codec, 100)) == size
