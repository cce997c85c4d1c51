"""Snapshots of keyed state and their restore, on every backend and from any to any."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import CorruptFileError, RestoreError, StateMigrationError
from holdfast.state import entry_strategies, keyed_file
from holdfast.state.descriptors import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from holdfast.state.handles import CheckpointRequest, KeyedSnapshot, SnapshotKind, SnapshotType
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.restore import KeyedShare, RestoreForecast, restore_into
from holdfast.state.snapshots import async_write, sync_prepare
from holdfast.state.store import Stamp
from holdfast.state.timers import TimeDomain
from holdfast.testing.contracts.keyed_subtask import MAX_PARALLELISM, scope_of
from holdfast.types.typeinfo import Types
from tests.kit.properties import examples
from tests.state.backend_under_test import Subtask
from tests.state.snapshot_memory import MemoryFiles, chain
from tests.state.stores import BACKENDS, ENTRY_BACKENDS, LMDB_IMAGE, make_backend

ALL = KeyGroupRange(0, MAX_PARALLELISM - 1)
VALUE = ValueStateDescriptor("value", Types.TUPLE([Types.LONG(), Types.LONG()]))
ENTRIES = MapStateDescriptor("map", "bigint", "string")
ELEMENTS = ListStateDescriptor("list", "string")


@pytest.fixture
def files() -> MemoryFiles:
    return MemoryFiles()


@pytest.fixture(params=(*ENTRY_BACKENDS, LMDB_IMAGE))
def task(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Subtask]:
    subtask = Subtask(request.param, tmp_path / "source")
    yield subtask
    subtask.close()


def snapshot(task: Subtask, files: MemoryFiles, base_epoch: int | None = None, number: int = 1) -> KeyedSnapshot:
    request = CheckpointRequest(number, SnapshotType.CHECKPOINT, 0, 1, task.stamp.epoch + 1, base_epoch)
    return async_write(sync_prepare(task.backend, request, "counter", 0), files, f"keyed-{number}")


def restored(
    name: str,
    directory: Path,
    found: list[KeyedSnapshot],
    files: MemoryFiles,
    key_groups: KeyGroupRange = ALL,
    stamp: Stamp | None = None,
) -> Subtask:
    store = make_backend(name).open(directory)
    restore_into(store, KeyedShare.of(found, key_groups), files, stamp or Stamp(7, "restored"))
    store.close()
    return Subtask(name, directory, scope_of(key_groups=key_groups))


def fill(task: Subtask, keys: range) -> None:
    value, entries = task.backend.state(VALUE), task.backend.state(ENTRIES)
    elements, timers = task.backend.state(ELEMENTS), task.backend.timers("t", TimeDomain.EVENT_TIME)
    for key in keys:
        task.at(key)
        value.update((key, key))
        entries.put_all({1: "one", 2: str(key)})
        elements.add_all([str(key), "x"])
        timers.register(key, key)


def content(task: Subtask, keys: range) -> dict[int, Any]:
    value, entries, elements = (task.backend.state(one) for one in (VALUE, ENTRIES, ELEMENTS))
    found = {}
    for key in keys:
        task.at(key)
        found[key] = (value.value(), dict(entries.items()), list(elements.get()))
    return found


def fired(task: Subtask) -> list[tuple[int, int]]:
    return [timer[:2] for timer in task.backend.timers("t", TimeDomain.EVENT_TIME).advance(10**9)]


@pytest.mark.parametrize("target", BACKENDS)
def test_a_full_snapshot_gives_everything_back(task: Subtask, files: MemoryFiles, tmp_path: Path, target: str) -> None:
    fill(task, range(100))
    full = snapshot(task, files)
    assert full.stands_alone and full.backend == task.kind.name
    assert files.shared == set(files.files)
    task.next_epoch()
    again = restored(target, tmp_path / "target", [full], files)
    assert again.stamp == Stamp(7, "restored")
    assert content(again, range(101)) == content(task, range(101))
    assert fired(again) == [(key, key) for key in range(100)]
    again.close()


def test_an_empty_subtask_has_a_full_snapshot_too(task: Subtask, files: MemoryFiles, tmp_path: Path) -> None:
    full = snapshot(task, files)
    assert full.stands_alone
    again = restored(task.name, tmp_path / "target", [full], files)
    assert again.backend.states_meta() == ()
    again.close()


def test_without_snapshots_the_store_is_empty(task: Subtask, files: MemoryFiles, tmp_path: Path) -> None:
    again = restored(task.name, tmp_path / "target", [], files)
    assert content(again, range(3)) == {key: (None, {}, []) for key in range(3)}
    again.close()


def test_a_delta_has_what_changed(task: Subtask, files: MemoryFiles, tmp_path: Path) -> None:
    fill(task, range(100))
    full = snapshot(task, files)
    task.next_epoch()
    base = task.stamp.epoch
    value, entries, elements = (task.backend.state(one) for one in (VALUE, ENTRIES, ELEMENTS))
    task.at(5)
    value.update((-5, -5))
    entries.remove(1)
    elements.add("appended")
    task.next_epoch()
    value, entries, elements = (task.backend.state(one) for one in (VALUE, ENTRIES, ELEMENTS))
    task.at(6)
    value.clear()
    entries.clear()
    elements.update(["replaced"])
    task.backend.timers("t", TimeDomain.EVENT_TIME).delete(6, 6)
    task.backend.timers("t", TimeDomain.EVENT_TIME).register(1000, 6)
    delta = snapshot(task, files, base_epoch=base, number=2)
    assert [file.kind for file in delta.files] == [SnapshotKind.DELTA]
    # Key 5: value, map entry, chunk. Key 6: value, two map entries, chunk, two timers.
    assert delta.files[0].entries == 9
    assert not delta.stands_alone
    again = restored(task.name, tmp_path / "target", [chain(full, delta)], files)
    assert content(again, range(100)) == content(task, range(100))
    assert sorted(fired(again)) == sorted({(key, key) for key in range(100)} - {(6, 6)} | {(1000, 6)})
    again.close()


def test_a_delta_falls_back_to_a_full_image(task: Subtask, files: MemoryFiles, tmp_path: Path) -> None:
    fill(task, range(10))
    task.next_epoch()
    again = restored(task.name, tmp_path / "target", [snapshot(task, files)], files, stamp=Stamp(7, "r"))
    assert snapshot(again, files, base_epoch=6, number=2).stands_alone, "marks begin with the restore"
    unchanged = snapshot(again, files, base_epoch=7, number=3)
    assert unchanged.files == () and chain(snapshot(task, files), unchanged).stands_alone
    again.close()


def test_a_large_deletion_is_a_range(task: Subtask, files: MemoryFiles, tmp_path: Path) -> None:
    entries = task.backend.state(ENTRIES)
    for key in (1, 2, 3):
        task.at(key)
        entries.put_all({number: "v" * 50 for number in range(2000)})
    full = snapshot(task, files)
    task.next_epoch()
    entries = task.backend.state(ENTRIES)
    task.at(2)
    entries.clear()
    entries.put(77, "again")
    delta = snapshot(task, files, base_epoch=task.stamp.epoch, number=2)
    assert delta.files[0].entries == 1
    assert delta.files[0].handle.size < 1000
    again = restored(task.name, tmp_path / "target", [chain(full, delta)], files)
    found = content(again, range(4))
    assert [len(found[key][1]) for key in range(4)] == [0, 2000, 1, 2000]
    assert found[2][1] == {77: "again"}
    again.close()


def test_one_percent_changed_is_about_one_percent_written(task: Subtask, files: MemoryFiles) -> None:
    task.backend.state(VALUE)
    value = task.backend.state(VALUE)
    for key in range(100_000):
        task.at(key)
        value.update((key, key * 7))
    full = snapshot(task, files)
    task.next_epoch()
    value = task.backend.state(VALUE)
    for key in range(0, 100_000, 100):
        task.at(key)
        value.update((key, value.value()[1] + 1))
    delta = snapshot(task, files, base_epoch=task.stamp.epoch, number=2)
    sizes = [sum(file.handle.size for file in one.files) for one in (full, delta)]
    assert delta.files[0].entries == 1000
    assert 0.005 * sizes[0] < sizes[1] <= 0.02 * sizes[0]


@pytest.mark.parametrize("task", ENTRY_BACKENDS, indirect=True)
def test_large_images_have_several_files(
    task: Subtask, files: MemoryFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyed_file, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(entry_strategies, "_SPOOL_MEMORY", 4000)
    encode = keyed_file.encode_parts
    monkeypatch.setattr(entry_strategies, "encode_parts", lambda *arguments: encode(*arguments, part_bytes=2000))
    fill(task, range(500))
    beats: list[int] = []
    request = CheckpointRequest(1, SnapshotType.CHECKPOINT, 0, 1, 1)
    prepared = sync_prepare(task.backend, request, "counter", 0)
    full = async_write(prepared, files, "keyed", heartbeat=lambda: beats.append(1))
    assert len(full.files) > 5 and len(beats) == len(full.files)
    assert [file.kind for file in full.files] == [SnapshotKind.FULL] + [SnapshotKind.DELTA] * (len(full.files) - 1)
    task.next_epoch()
    again = restored(task.name, tmp_path / "target", [full], files)
    assert content(again, range(500)) == content(task, range(500))
    again.close()


def test_a_heartbeat_that_raises_cancels(task: Subtask, files: MemoryFiles) -> None:
    fill(task, range(10))
    prepared = sync_prepare(task.backend, CheckpointRequest(1, SnapshotType.CHECKPOINT, 0, 1, 1), "counter", 0)

    def cancelled() -> None:
        raise InterruptedError("cancelled")

    with pytest.raises(InterruptedError):
        async_write(prepared, files, "keyed", heartbeat=cancelled)
    assert files.files == {}


def test_a_snapshot_is_of_the_moment_of_its_sync_part(task: Subtask, files: MemoryFiles, tmp_path: Path) -> None:
    fill(task, range(10))
    task.next_epoch()
    base = task.stamp.epoch
    fill(task, range(10, 20))
    requests = [
        CheckpointRequest(number, SnapshotType.CHECKPOINT, 0, 1, 2, since) for number, since in ((1, None), (2, base))
    ]
    prepared = [sync_prepare(task.backend, request, "counter", 0) for request in requests]
    fill(task, range(20, 30))
    task.next_epoch()
    full, delta = (async_write(one, files, "keyed") for one in prepared)
    again = restored(task.name, tmp_path / "target", [full], files)
    assert [key for key, found in content(again, range(30)).items() if found[0]] == list(range(20))
    again.close()
    assert sum(file.entries for file in delta.files) == 10 * 5


@pytest.mark.parametrize("task", ENTRY_BACKENDS, indirect=True)
def test_full_is_asked_for_by_operator_and_subtask(task: Subtask, files: MemoryFiles) -> None:
    fill(task, range(10))
    task.next_epoch()
    request = CheckpointRequest(1, SnapshotType.CHECKPOINT, 0, 1, 2, task.stamp.epoch, frozenset({("counter", 3)}))
    assert sync_prepare(task.backend, request, "counter", 3).strategy == "full"
    assert sync_prepare(task.backend, request, "counter", 2).strategy == "changed-keys"


# Rescaling


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (2, 3), (3, 2), (4, 4)])
def test_rescaling(tmp_path: Path, files: MemoryFiles, before: int, after: int) -> None:
    for name in (*BACKENDS, LMDB_IMAGE):
        old, snapshots_found = {}, []
        for number in range(before):
            key_groups = KeyGroupRange.of(number, MAX_PARALLELISM, before)
            task = Subtask(name, tmp_path / f"{name}-old-{number}", scope_of(key_groups=key_groups))
            mine = [key for key in range(300) if task.scope.key_codec.hash(key) % MAX_PARALLELISM in key_groups]
            for key in mine:
                # Subtasks that see other rows first register in another order.
                order = (VALUE, ENTRIES, ELEMENTS) if number % 2 else (ELEMENTS, ENTRIES, VALUE)
                for descriptor in order:
                    task.backend.state(descriptor)
                fill(task, range(key, key + 1))
            snapshots_found.append(snapshot(task, files))
            task.next_epoch()
            old.update({key: content(task, range(key, key + 1))[key] for key in mine})
            task.close()
        new, timers = {}, []
        for number in range(after):
            key_groups = KeyGroupRange.of(number, MAX_PARALLELISM, after)
            task = restored(name, tmp_path / f"{name}-new-{number}", snapshots_found, files, key_groups)
            mine = [key for key in range(300) if task.scope.key_codec.hash(key) % MAX_PARALLELISM in key_groups]
            new.update({key: content(task, range(key, key + 1))[key] for key in mine})
            timers += fired(task)
            task.close()
        assert new == old and len(new) == 300
        assert sorted(timers) == [(key, key) for key in range(300)]


def test_a_rescaled_subtask_reads_its_share(task: Subtask, files: MemoryFiles, tmp_path: Path) -> None:
    value = task.backend.state(VALUE)
    for key in range(100_000):
        task.at(key)
        value.update((key, key))
    full = snapshot(task, files)
    size = sum(file.handle.size for file in full.files)
    store = make_backend(task.name).open(tmp_path / "target")
    files.bytes_read = 0
    share = KeyedShare.of([full], KeyGroupRange.of(3, MAX_PARALLELISM, 10))
    restore_into(store, share, files, Stamp(1, "r"))
    read = files.bytes_read
    assert read < 0.25 * size
    assert RestoreForecast(files).bytes_of(share) == read
    store.close()


def test_a_state_that_subtasks_stored_in_two_forms_is_there_in_both(tmp_path: Path, files: MemoryFiles) -> None:
    found = []
    for number, type_like in enumerate(("int", "bigint")):
        key_groups = KeyGroupRange.of(number, MAX_PARALLELISM, 2)
        task = Subtask("heap", tmp_path / str(number), scope_of(key_groups=key_groups))
        state = task.backend.state(ValueStateDescriptor("v", type_like))
        mine = [key for key in range(20) if task.scope.key_codec.hash(key) % MAX_PARALLELISM in key_groups]
        for key in mine:
            task.at(key)
            state.update(key)
        found.append(snapshot(task, files))
        task.close()
    task = restored("heap", tmp_path / "target", found, files)
    assert [meta.name for meta in task.backend.states_meta()] == ["v", "v"]
    # Nobody has asked for it: the next snapshot has both as well.
    again = restored("heap", tmp_path / "again", [snapshot(task, files)], files)
    state = again.backend.state(ValueStateDescriptor("v", "bigint"))
    for key in range(20):
        again.at(key)
        assert state.value() == key
    assert [meta.name for meta in again.backend.states_meta()] == ["v"]
    again.close()
    task.close()


def test_subtasks_that_disagree_on_their_keys_are_refused(tmp_path: Path, files: MemoryFiles) -> None:
    found = []
    for number in range(2):
        key_groups = KeyGroupRange.of(number, MAX_PARALLELISM, 2)
        task = Subtask("heap", tmp_path / str(number), scope_of(key_groups=key_groups))
        found.append(snapshot(task, files))
        task.close()
    for change in ({"key_serializer": {"another": "key"}}, {"key_version": 3}):
        other = msgspec.structs.replace(found[1], **change)
        with pytest.raises(RestoreError, match="disagree on the type of its keys"):
            restored("heap", tmp_path / "target", [found[0], other], files)


# Damage


def test_every_flipped_byte_is_found_at_restore(files: MemoryFiles, tmp_path: Path) -> None:
    task = Subtask("heap", tmp_path / "source")
    fill(task, range(3))
    full = snapshot(task, files)
    task.next_epoch()
    fill(task, range(2, 5))
    both = chain(full, snapshot(task, files, base_epoch=task.stamp.epoch, number=2))
    task.close()
    store = make_backend("heap").open(tmp_path / "target")
    assert len(files.files) == 2
    for path, data in list(files.files.items()):
        for at in range(len(data)):
            files.files[path] = data[:at] + bytes((data[at] ^ 0x10,)) + data[at + 1 :]
            with pytest.raises(CorruptFileError):
                restore_into(store, KeyedShare.of([both], ALL), files, Stamp(1, "r"))
        files.files[path] = data
    assert store.stamp() is None
    restore_into(store, KeyedShare.of([both], ALL), files, Stamp(1, "r"))
    assert store.stamp() == Stamp(1, "r")


# Types that changed


def test_an_incompatible_type_names_everything(task: Subtask, files: MemoryFiles, tmp_path: Path) -> None:
    fill(task, range(3))
    again = restored(task.name, tmp_path / "target", [snapshot(task, files)], files)
    with pytest.raises(StateMigrationError, match=r"'value' of operator 'counter' .*TUPLE<LONG, LONG>.*STRING"):
        again.backend.state(ValueStateDescriptor("value", "string"))
    with pytest.raises(StateMigrationError, match=r"list state .* value state"):
        again.backend.state(ValueStateDescriptor("list", "string"))
    with pytest.raises(StateMigrationError, match=r"map_key type LONG.*STRING"):
        again.backend.state(MapStateDescriptor("map", "string", "string"))
    again.close()


def test_another_key_type_is_refused(task: Subtask, files: MemoryFiles, tmp_path: Path) -> None:
    fill(task, range(3))
    restored(task.name, tmp_path / "target", [snapshot(task, files)], files).close()
    with pytest.raises(StateMigrationError, match="'counter'"):
        Subtask(task.name, tmp_path / "target", scope_of(key_type="string"))


def test_migration_rewrites_all_entries(task: Subtask, files: MemoryFiles, tmp_path: Path) -> None:
    old = [
        ValueStateDescriptor("value", Types.INT()),
        ReducingStateDescriptor("reducing", max, Types.INT()),
        ListStateDescriptor("list", Types.INT()),
        MapStateDescriptor("map", "bigint", Types.INT()),
    ]
    new = [
        ValueStateDescriptor("value", Types.LONG()),
        ReducingStateDescriptor("reducing", max, Types.LONG()),
        ListStateDescriptor("list", Types.LONG()),
        MapStateDescriptor("map", "bigint", Types.LONG()),
    ]
    value, reducing, elements, entries = (task.backend.state(one) for one in old)
    for key in range(3000):
        task.at(key)
        value.update(key)
        reducing.add(key)
        elements.add_all([key, 1])
        entries.put(1, key)
        entries.put(2, None)
    again = restored(task.name, tmp_path / "target", [snapshot(task, files)], files)
    for _ in range(2):
        value, reducing, elements, entries = (again.backend.state(one) for one in new)
        for key in range(0, 3000, 7):
            again.at(key)
            assert (value.value(), reducing.get(), elements.get()) == (key, key, [key, 1])
            assert dict(entries.items()) == {1: key, 2: None}
        again.at(0)
        reducing.add(2**40)
        again.next_epoch()
        again.at(0)
        assert again.backend.state(new[1]).get() == 2**40
        reducing = again.backend.state(new[1])
        reducing.clear()
        reducing.add(0)
        again.next_epoch()
    kinds = {meta.name: meta.serializers["value"]["type"] for meta in again.backend.states_meta()}
    assert set(map(str, kinds.values())) == {str(Types.LONG().to_json())}
    again.close()


def test_unasked_state_goes_through_restores(task: Subtask, files: MemoryFiles, tmp_path: Path) -> None:
    fill(task, range(20))
    once = restored(task.name, tmp_path / "one", [snapshot(task, files)], files)
    once.at(1)
    once.backend.state(ValueStateDescriptor("unrelated", "bigint")).update(1)
    twice = restored(task.name, tmp_path / "two", [snapshot(once, files)], files)
    task.next_epoch()
    assert content(twice, range(20)) == content(task, range(20))
    assert fired(twice) == [(key, key) for key in range(20)]
    once.close()
    twice.close()


# Any history


_steps = st.lists(
    st.tuples(
        st.sampled_from(["put", "add", "remove", "clear", "epoch", "snapshot", "abort", "forget"]),
        st.integers(0, 3),
        st.integers(0, 150),
    ),
    max_size=60,
)


@pytest.mark.parametrize("name", BACKENDS)
@given(steps=_steps)
@settings(max_examples=examples(25))
def test_chains_of_any_history_restore_the_present(
    name: str, tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int]]
) -> None:
    directory, files = tmp_path_factory.mktemp("chain"), MemoryFiles()
    task = Subtask(name, directory / "source")
    completed = snapshot(task, files)
    base = task.stamp.epoch + 1
    task.next_epoch()
    for number, (step, key, amount) in enumerate(steps, start=2):
        task.at(key)
        entries, elements = task.backend.state(ENTRIES), task.backend.state(ELEMENTS)
        if step == "put":
            entries.put_all({one: f"{number}" for one in range(amount)})
        elif step == "add":
            elements.add(str(number))
        elif step == "remove":
            entries.remove(amount)
        elif step == "clear":
            entries.clear()
        elif step == "epoch":
            task.next_epoch(cached=key % 2 == 0)
        elif step == "abort":
            snapshot(task, files, base, number)
        elif step == "forget":
            task.store.forget_changes(base)
        else:
            completed = chain(completed, snapshot(task, files, base, number))
            base = task.stamp.epoch + 1
            task.next_epoch()
    completed = chain(completed, snapshot(task, files, base, 1000))
    task.next_epoch()
    again = restored(name, directory / "target", [completed], files)
    assert content(again, range(4)) == content(task, range(4))
    task.close()
    again.close()
