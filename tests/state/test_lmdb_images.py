"""Full snapshots of an LMDB store by its file, and their restore into every backend."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lmdb
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import StateError
from holdfast.state.handles import CheckpointRequest, FileHandle, KeyedSnapshot, SavepointFormat, SnapshotType
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.keys import KeyCodec
from holdfast.state.lmdb import image
from holdfast.state.lmdb import snapshot as lmdb_snapshot
from holdfast.state.lmdb.backend import LmdbBackend
from holdfast.state.regrouping import Regrouping
from holdfast.state.restore import KeyedShare, restore_into
from holdfast.state.snapshots import async_write, sync_prepare
from holdfast.state.store import LocalStore, Stamp
from holdfast.state.strategies import PreparedSnapshot
from holdfast.state.timers import TimeDomain
from holdfast.testing.contracts.keyed_subtask import MAX_PARALLELISM, scope_of
from holdfast.testing.contracts.stores import LOWEST
from holdfast.types.resolve import resolve
from tests.state.backend_under_test import Subtask
from tests.state.snapshot_memory import MemoryFiles, chain
from tests.state.stores import BACKENDS, LMDB_IMAGE, make_backend
from tests.state.test_native_snapshots import group_of
from tests.state.test_snapshots import ALL, content, fill, fired, restored

KEYS = range(400)
TARGETS = (*BACKENDS, LMDB_IMAGE)
START = Stamp(0, "start")


@pytest.fixture
def files() -> MemoryFiles:
    return MemoryFiles()


@pytest.fixture
def task(tmp_path: Path) -> Iterator[Subtask]:
    subtask = subtask_in(tmp_path / "source")
    yield subtask
    subtask.close()


def subtask_in(directory: Path) -> Subtask:
    """With some keys in its last commit, and some that its running epoch has changed."""
    task = Subtask(LMDB_IMAGE, directory)
    fill(task, range(395))
    task.next_epoch()
    fill(task, range(390, 400))
    timers = task.backend.timers("t", TimeDomain.EVENT_TIME)
    for key in (3, 394, 399):
        timers.delete(key, key)
    return task


def firing() -> list[tuple[int, int]]:
    return [(key, key) for key in KEYS if key not in (3, 394, 399)]


def prepare(task: Subtask, number: int = 1, base: int | None = None, **more: Any) -> PreparedSnapshot:
    request = CheckpointRequest(number, SnapshotType.CHECKPOINT, 0, 1, task.stamp.epoch + 1, base)
    return sync_prepare(task.backend, msgspec.structs.replace(request, **more), "counter", 0)


def take(task: Subtask, files: MemoryFiles, number: int = 1, base: int | None = None) -> KeyedSnapshot:
    prepared = prepare(task, number, base)
    task.next_epoch()
    return async_write(prepared, files, f"keyed-{number}")


@pytest.fixture
def as_files_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """No entry of a database is read."""
    monkeypatch.delattr("holdfast.state.restore.backend_of_images")


@pytest.mark.parametrize("target", TARGETS)
def test_every_backend_takes_it(task: Subtask, files: MemoryFiles, tmp_path: Path, target: str) -> None:
    full = take(task, files)
    assert full.stands_alone and full.has_entries and full.native is not None and len(full.files) == 1
    assert files.shared == set(files.files)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(full), type=KeyedSnapshot) == full
    again = restored(target, tmp_path / "target", [full], files)
    assert content(again, KEYS) == content(task, KEYS)
    assert fired(again) == firing()
    again.close()


@pytest.mark.usefixtures("as_files_only")
def test_the_same_key_groups_take_the_file(task: Subtask, files: MemoryFiles, tmp_path: Path) -> None:
    full = take(task, files)
    again = restored(LMDB_IMAGE, tmp_path / "target", [full], files)
    assert content(again, KEYS) == content(task, KEYS) and fired(again) == firing()
    assert {path.name for path in (tmp_path / "target").iterdir()} == {"data.mdb", "lock.mdb", "restoring.lock"}
    again.restart()
    with pytest.raises(StateError, match="no undo of epoch 7"):
        again.store.begin(Stamp(0, "start"))
    again.store.begin(again.stamp)
    again.backend = again._make()
    # It goes on from there: changes are known, and are stored on top.
    fill(again, range(400, 410))
    delta = take(again, files, 2, base=7)
    assert delta.native is None and len(delta.files) == 1
    last = restored(LMDB_IMAGE, tmp_path / "last", [chain(full, delta)], files)
    assert content(last, range(410)) == content(again, range(410))
    for one in (again, last):
        one.close()


def test_a_store_that_is_there_is_not_replaced(task: Subtask, files: MemoryFiles, tmp_path: Path) -> None:
    """Another process may have it open: it gets the new content by a commit."""
    full = take(task, files)
    expected = content(task, KEYS)
    other = make_backend(LMDB_IMAGE).open(tmp_path / "target")
    other.load([[(b"\0\1old", b"old")]], START)
    file = (tmp_path / "target" / "data.mdb").stat().st_ino
    again = restored(LMDB_IMAGE, tmp_path / "target", [full], files)
    assert (tmp_path / "target" / "data.mdb").stat().st_ino == file
    assert other.stamp() == again.stamp
    assert content(again, KEYS) == expected
    other.close()
    again.close()


def test_later_commits_change_nothing_of_it(task: Subtask, files: MemoryFiles, tmp_path: Path) -> None:
    prepared = prepare(task)
    task.next_epoch()
    expected = content(task, KEYS)
    for _ in range(3):
        fill(task, range(0, 300))
        task.next_epoch()
    # The job has ended meanwhile, and what it had on the host is gone.
    task.close()
    shutil.rmtree(task.directory)
    full = async_write(prepared, files, "keyed")
    assert full.native is not None
    again = restored(LMDB_IMAGE, tmp_path / "target", [full], files)
    assert content(again, KEYS) == expected and fired(again) == firing()
    again.close()
    task.directory.mkdir()


def test_nothing_is_kept_when_it_is_written_or_given_up(task: Subtask, files: MemoryFiles) -> None:
    environment = task.store._open  # type: ignore[attr-defined]  # of LMDB
    written, released, forgotten = prepare(task, 1), prepare(task, 2), prepare(task, 3)
    assert len(environment.pinned) == 3
    async_write(written, files, "keyed")
    written.release()
    released.release()
    del forgotten
    assert environment.pinned == set() and environment.references == 1


def test_a_store_that_has_stepped_back_is_stored_as_entries(task: Subtask, files: MemoryFiles, tmp_path: Path) -> None:
    """Its last commit is not what the epoch is based on."""
    expected = content(task, KEYS)
    accepted = task.stamp
    task.next_epoch()
    task.stamp = accepted
    task.restart()
    fill(task, range(390, 400))
    prepared = prepare(task)
    assert prepared.strategy == "full"
    again = restored(LMDB_IMAGE, tmp_path / "target", [async_write(prepared, files, "keyed")], files)
    assert content(again, KEYS) == expected
    again.close()


def test_small_stores_and_such_with_many_changes_are_stored_as_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lmdb_snapshot, "_FEW_BYTES", 20_000)
    strategies = {}
    for name, backend, few in (("small", LmdbBackend(), 1), ("few", LmdbBackend(images_from=50_000), 1)):
        strategies[name] = strategy_of(backend, tmp_path / name, 2000, few)
    strategies["many"] = strategy_of(LmdbBackend(images_from=50_000), tmp_path / "many", 2000, 1900)
    strategies["records"] = strategy_of(LmdbBackend(images_from=50_000), tmp_path / "records", 2000, 1, epochs=20)
    assert strategies == {"small": "full", "few": "native-full", "many": "full", "records": "full"}


def strategy_of(backend: LmdbBackend, directory: Path, keys: int, changed: int, epochs: int = 1) -> str:
    task = Subtask("lmdb", directory)
    task.close()
    task.store = backend.open(directory)
    task.store.begin(task.stamp)
    for epoch in range(epochs):
        task.store.write([(stored_key(number), bytes([epoch]) * 90) for number in range(keys)])
        task.stamp = Stamp(epoch + 1, "n")
        task.store.commit(task.stamp)
        task.store.begin(task.stamp)
    task.store.write([(stored_key(number), b"x" * 90) for number in range(changed)])
    task.backend = task._make()
    prepared = prepare(task)
    prepared.release()
    task.close()
    return prepared.strategy


def stored_key(number: int) -> bytes:
    return (number % 128).to_bytes(2, "big") + b"\0\1" + number.to_bytes(4, "big")


@pytest.mark.parametrize("target", TARGETS)
def test_from_two_to_three_subtasks(files: MemoryFiles, tmp_path: Path, target: str) -> None:
    found, expected = [], {}
    for number in range(2):
        key_groups = KeyGroupRange.of(number, MAX_PARALLELISM, 2)
        task = Subtask(LMDB_IMAGE, tmp_path / f"old-{number}", scope_of(key_groups=key_groups))
        mine: Any = [key for key in KEYS if group_of(key) in key_groups]
        fill(task, mine[5:])
        task.next_epoch()
        fill(task, mine[:10])
        found.append(take(task, files))
        expected |= content(task, mine)
        task.close()
    assert all(one.native is not None for one in found)
    seen = {}
    for number in range(3):
        key_groups = KeyGroupRange.of(number, MAX_PARALLELISM, 3)
        again = restored(target, tmp_path / f"new-{number}", found, files, key_groups)
        mine = [key for key in KEYS if group_of(key) in key_groups]
        seen |= content(again, mine)
        assert fired(again) == [(key, key) for key in mine]
        again.close()
    assert seen == expected


@pytest.mark.parametrize("target", TARGETS)
def test_another_maximum_parallelism(task: Subtask, files: MemoryFiles, tmp_path: Path, target: str) -> None:
    full = take(task, files)
    share = KeyedShare.of([full], KeyGroupRange(0, 63), Regrouping(KeyCodec.for_type(resolve("bigint")), 64))
    store = make_backend(target).open(tmp_path / "target")
    restore_into(store, share, files, Stamp(7, "restored"))
    store.close()
    scope = scope_of(key_groups=KeyGroupRange(0, 63))._replace(max_parallelism=64)
    again = Subtask(target, tmp_path / "target", scope)
    assert content(again, KEYS) == content(task, KEYS)
    again.close()


def test_native_savepoints_are_images_and_canonical_ones_are_not(
    task: Subtask, files: MemoryFiles, tmp_path: Path
) -> None:
    fields = {"checkpoint_type": SnapshotType.SAVEPOINT, "base_epoch": task.stamp.epoch}
    assert prepare(task, **fields, savepoint_format=SavepointFormat.CANONICAL).strategy == "full"
    prepared = prepare(task, **fields, savepoint_format=SavepointFormat.NATIVE)
    assert prepared.strategy == "native-full"
    task.next_epoch()
    savepoint = async_write(prepared, files, "keyed", shared=False)
    assert not files.shared
    again = restored("heap", tmp_path / "target", [savepoint], files)
    assert content(again, KEYS) == content(task, KEYS)
    again.close()


@pytest.mark.parametrize("target", ["lmdb", "heap", "rocksdb"])
def test_long_keys(files: MemoryFiles, tmp_path: Path, target: str) -> None:
    """LMDB stores digests of them, out of order."""
    heads = [b"\0\5\0\1" + b"k" * length for length in (3, 459, 460, 500, 900)]
    model = {head + bytes([last]): b"v" * last for head in heads for last in range(40)}
    store = make_backend(LMDB_IMAGE).open(tmp_path / "source")
    store.load([sorted(model.items())], START)
    store.begin(START)
    deleted = sorted(model)[::7]
    store.write([(key, None) for key in deleted])
    task = Subtask.__new__(Subtask)
    task.kind, task.store, task.stamp, task.scope = make_backend(LMDB_IMAGE), store, START, scope_of()
    task.cache_limit, task.clock = None, lambda: 0  # type: ignore[assignment]  # no state has a time to live
    task.backend = task._make()
    full = async_write(prepare(task), files, "keyed")
    store.close()
    for groups in (ALL, KeyGroupRange(0, 63)):
        again = make_backend(target).open(tmp_path / f"target-{groups.end}")
        restore_into(again, KeyedShare.of([full], groups), files, Stamp(1, "again"))
        assert list(entries(again, Stamp(1, "again"))) == sorted(model.items() - {(key, model[key]) for key in deleted})
        again.close()


def entries(store: LocalStore, stamp: Stamp) -> Iterator[tuple[bytes, bytes]]:
    store.begin(stamp)
    return store.scan(LOWEST, b"\x80")


_ends = st.binary(min_size=1, max_size=3)
_batches = st.dictionaries(st.one_of(_ends, _ends.map(lambda end: b"k" * 500 + end)), st.one_of(st.none(), _ends))


@given(st.lists(_batches, max_size=5), st.booleans())
def test_entries_are_loaded_in_any_order(batches: list[dict[bytes, bytes | None]], in_order: bool) -> None:
    """Entries in order are appended, which LMDB does not check."""
    model: dict[bytes, bytes | None] = {}
    for batch in batches:
        model |= batch
    with tempfile.TemporaryDirectory() as directory:
        store = make_backend("lmdb").open(Path(directory))
        store.load([sorted(model.items())] if in_order else [list(batch.items()) for batch in batches], START)
        store.begin(START)
        found = list(store.scan(LOWEST, b"\xff" * 600))
        store.close()
    assert found == sorted((key, value) for key, value in model.items() if value is not None)


@pytest.mark.parametrize(("data", "most"), [(os.urandom(1 << 20), 1.001), (b"some text " * 100_000, 0.1), (b"", 100)])
def test_pieces_are_compressed_where_that_helps(data: bytes, most: float) -> None:
    stored = image.encode_piece(data)
    assert len(stored) <= most * max(len(data), 1)
    assert bytes(memoryview(image.decode_piece(stored, FileHandle("path", len(stored), "")))) == data


def test_what_it_needs_of_lmdb_is_there() -> None:
    """Otherwise every snapshot would be one of entries, and no other test would tell."""
    assert lmdb.version(subpatch=True)[-1]
