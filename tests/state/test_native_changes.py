"""Changes on top of a database, of LMDB and of RocksDB, applied to its files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from holdfast.checkpoint.rebase import full_image_due
from holdfast.state.entry_strategies import KeyDelta
from holdfast.state.handles import CheckpointRequest, SnapshotType
from holdfast.state.snapshots import async_write
from holdfast.state.timers import TimeDomain
from tests.state.backend_under_test import Subtask
from tests.state.snapshot_memory import MemoryFiles, chain
from tests.state.stores import LMDB_IMAGE
from tests.state.test_lmdb_images import KEYS, subtask_in, take
from tests.state.test_native_snapshots import group_of
from tests.state.test_snapshots import ENTRIES, content, fill, fired, restored


@pytest.fixture
def files() -> MemoryFiles:
    return MemoryFiles()


@pytest.fixture
def task(tmp_path: Path) -> Iterator[Subtask]:
    subtask = subtask_in(tmp_path / "source")
    yield subtask
    subtask.close()


@pytest.fixture
def as_files_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """No entry of a database is read."""
    monkeypatch.delattr("holdfast.state.restore.backend_of_images")


@pytest.mark.parametrize("name", [LMDB_IMAGE, "rocksdb"])
@pytest.mark.usefixtures("as_files_only")
def test_changes_are_applied_to_the_file(
    files: MemoryFiles, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.state.rocksdb.snapshot._FEW_BYTES", 0)
    monkeypatch.setattr("holdfast.state.rocksdb.snapshot._SMALL_SHARE", 0.0)
    task = Subtask(name, tmp_path / "source")
    fill(task, KEYS)
    with_map(task, 7, range(200))
    task.next_epoch()
    stored = take(task, files)
    expected: list[tuple[int, int]] = []
    for number in range(2, 5):
        expected = changed(task, number)
        with_map(task, 7, range(0) if number % 2 else range(number, 300))
        delta = take(task, files, number, base=task.stamp.epoch)
        assert delta.native is None and len(delta.files) == 1
        stored = chain(stored, delta)
    for number in (8, 10):
        again = restored(name, tmp_path / str(number), [stored], files)
        assert content(again, KEYS) == content(task, KEYS)
        index = [key for key, _ in again.store.scan(b"\xff\xff\0", b"\xff\xff\xff")]
        assert len(index) == len(expected), "no entry is left of timers that are not there"
        assert fired(again) == expected
        again.restart()
        for one in (task, again):
            one.backend.timers("t", TimeDomain.EVENT_TIME).register(5, 5)
            fill(one, range(20, 30))
        expected = sorted({*expected, (5, 5), *((key, key) for key in range(20, 30))})
        task.next_epoch()
        stored = chain(stored, take(again, files, number, base=7))
        again.close()
    task.close()


def changed(task: Subtask, number: int) -> list[tuple[int, int]]:
    """Delete some timers and add others; those that are there then."""
    timers = task.backend.timers("t", TimeDomain.EVENT_TIME)
    for key in range(100 * number, 100 * number + 100):
        timers.delete(key, key)
        timers.register(key + 1000, key)
    timers.register(200, 200)
    moved = range(200, 100 * number + 100)
    kept = [key for key in KEYS if key not in moved]
    return sorted([(key, key) for key in (*kept, 200)] + [(key + 1000, key) for key in moved])


def with_map(task: Subtask, key: int, entries: range) -> None:
    """The whole map of a key anew: what it had is deleted as a range."""
    state = task.backend.state(ENTRIES)
    task.at(key)
    state.clear()
    state.put_all({number: f"entry {number}" for number in entries})


@pytest.mark.parametrize("name", [LMDB_IMAGE, "rocksdb"])
def test_a_deleted_range_with_timers_is_left_to_the_entries(files: MemoryFiles, tmp_path: Path, name: str) -> None:
    """Nothing deletes timers so; whoever did would leave the index as it was."""
    task = Subtask("rocksdb-keys" if name == "rocksdb" else name, tmp_path / "source")
    timers = task.backend.timers("t", TimeDomain.EVENT_TIME)
    for number in range(200):
        timers.register(number, 5)
    timers.register(77, 6)
    task.next_epoch()
    if name == "rocksdb":
        task.close()
        task = Subtask(name, tmp_path / "source")
    full = take(task, files)
    group = group_of(5).to_bytes(2, "big")
    task.store.delete_range(group, group + b"\xff")
    task.backend = task._make()
    request = CheckpointRequest(2, SnapshotType.CHECKPOINT, 0, 1, task.stamp.epoch + 1, task.stamp.epoch)
    prepared = KeyDelta().prepare(task.backend, request, task.stamp.epoch)
    assert prepared is not None
    stored = chain(full, async_write(prepared, files, "delta"))
    task.close()
    again = restored(name, tmp_path / "target", [stored], files)
    assert fired(again) == [(77, 6)]
    again.close()


def test_an_image_counts_with_what_is_stored_beside_it(task: Subtask, files: MemoryFiles) -> None:
    full = take(task, files, 1)
    assert full.files and not full_image_due(full)
    large = msgspec.structs.replace(full.files[0], handle=msgspec.structs.replace(full.files[0].handle, size=10**9))
    assert not full_image_due(msgspec.structs.replace(full, files=(large,))), "it is of the image"
    later = msgspec.structs.replace(large, checkpoint_id=2)
    assert full_image_due(msgspec.structs.replace(full, files=(*full.files, later)))


