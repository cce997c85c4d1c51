"""Full snapshots of an LMDB store by its file, and their restore into every backend."""

from __future__ import annotations

import gc
import multiprocessing
import os
import resource
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lmdb
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.checkpoint.rebase import full_image_due
from holdfast.errors import CheckpointError, CorruptFileError, RestoreError, StateError
from holdfast.state.entry_strategies import KeyDelta
from holdfast.state.handles import CheckpointRequest, FileHandle, KeyedSnapshot, SavepointFormat, SnapshotType
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.keys import KeyCodec
from holdfast.state.lmdb import environments, image
from holdfast.state.lmdb import snapshot as lmdb_snapshot
from holdfast.state.lmdb.backend import LmdbBackend
from holdfast.state.regrouping import Regrouping
from holdfast.state.restore import KeyedShare, restore_into
from holdfast.state.snapshots import async_write, sync_prepare
from holdfast.state.store import LocalStore, Stamp
from holdfast.state.strategies import PreparedSnapshot
from holdfast.state.timers import TimeDomain
from holdfast.types.resolve import resolve
from tests.state.backend_under_test import MAX_PARALLELISM, Subtask, scope_of
from tests.state.snapshot_memory import MemoryFiles, chain
from tests.state.stores import BACKENDS, LMDB_IMAGE, LOWEST, make_backend
from tests.state.test_native_snapshots import group_of
from tests.state.test_snapshots import ALL, ENTRIES, content, fill, fired, restored

KEYS = range(400)
TARGETS = (*BACKENDS, LMDB_IMAGE)
START = Stamp(0, "start")


@pytest.fixture
def files() -> MemoryFiles:
    return MemoryFiles()


@pytest.fixture
def task(tmp_path: Path) -> Iterator[Subtask]:
    """With some keys in its last commit, and some that its running epoch has changed."""
    subtask = Subtask(LMDB_IMAGE, tmp_path / "source")
    fill(subtask, range(395))
    subtask.next_epoch()
    change(subtask)
    yield subtask
    subtask.close()


def change(task: Subtask) -> None:
    fill(task, range(390, 400))
    timers = task.backend.timers("t", TimeDomain.EVENT_TIME)
    for key in (3, 394, 399):
        timers.delete(key, key)


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
    monkeypatch.setattr("holdfast.state.restore._DATABASES", {})


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
    """Of which LMDB stores digests, out of order."""
    heads = [b"\0\5\0\1" + b"k" * length for length in (3, 459, 460, 500, 900)]
    model = {head + bytes([last]): b"v" * last for head in heads for last in range(40)}
    store = make_backend(LMDB_IMAGE).open(tmp_path / "source")
    store.load([sorted(model.items())], START)
    store.begin(START)
    deleted = sorted(model)[::7]
    store.write([(key, None) for key in deleted])
    task = Subtask.__new__(Subtask)
    task.name, task.store, task.stamp, task.scope = LMDB_IMAGE, store, START, scope_of()
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


# Changes on top of a database, of LMDB and of RocksDB


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


# What goes wrong


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("piece", [0, 1])
def test_damage_is_named(
    task: Subtask, files: MemoryFiles, tmp_path: Path, target: str, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lmdb_snapshot, "PIECE_BYTES", 40_000)
    full = take(task, files)
    assert full.native is not None and len(full.native.files) > 2
    path = full.native.files[piece].handle.path
    data = files.files[path]
    for number, damaged in enumerate((b"", data[:10], b"X" + data[1:])):
        files.files[path] = damaged
        with pytest.raises(CorruptFileError, match=path):
            restored(target, tmp_path / f"target-{number}", [full], files)
        assert not environments.exists(tmp_path / f"target-{number}") or target not in ("lmdb", LMDB_IMAGE)
    files.files[path] = data
    restored(target, tmp_path / "target-0", [full], files).close()


@pytest.mark.parametrize("target", TARGETS)
def test_what_lmdb_cannot_open_is_told(task: Subtask, files: MemoryFiles, tmp_path: Path, target: str) -> None:
    full = take(task, files)
    assert full.native is not None
    path = full.native.files[0].handle.path
    pages = bytearray(image.decode_piece(files.files[path], full.native.files[0].handle))
    for page in (0, 4096):
        assert pages[page + 16 : page + 20] == bytes.fromhex("dec0efbe"), "its magic"
        pages[page + 20 : page + 24] = (999).to_bytes(4, "little")
    files.files[path] = image.encode_piece(bytes(pages))
    handle = msgspec.structs.replace(full.native.files[0].handle, size=len(files.files[path]))
    piece = msgspec.structs.replace(full.native.files[0], handle=handle)
    full = msgspec.structs.replace(full, native=msgspec.structs.replace(full.native, files=(piece,)))
    with pytest.raises(StateError, match=r"cannot open here \(.*another version.*savepoint in the canonical format"):
        restored(target, tmp_path / "target", [full], files)


def test_a_database_of_an_unknown_engine(task: Subtask, files: MemoryFiles, tmp_path: Path) -> None:
    full = take(task, files)
    assert full.native is not None
    other = msgspec.structs.replace(full, native=msgspec.structs.replace(full.native, engine="leveldb"))
    with pytest.raises(RestoreError, match=r"'leveldb'; this version reads those of \['lmdb', 'rocksdb'\]"):
        restored("lmdb", tmp_path / "target", [other], files)


@contextmanager
def small_files_only() -> Iterator[None]:
    """The system refuses to write more: as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk(task: Subtask, files: MemoryFiles, tmp_path: Path) -> None:
    prepared = [prepare(task, 1), prepare(task, 2)]
    task.next_epoch()
    with small_files_only(), pytest.raises(CheckpointError, match=r"cannot be copied.*File too large.*space left"):
        async_write(prepared[0], files, "keyed")
    full = async_write(prepared[1], files, "keyed")
    with small_files_only(), pytest.raises(StateError, match=r"cannot be written.*File too large.*space left"):
        restored(LMDB_IMAGE, tmp_path / "target", [full], files)
    assert not environments.exists(tmp_path / "target")
    again = restored(LMDB_IMAGE, tmp_path / "target", [full], files)
    assert content(again, KEYS) == content(task, KEYS)
    again.close()


def test_those_that_restore_at_once_make_one_store(task: Subtask, tmp_path: Path) -> None:
    class Slow(MemoryFiles):
        """Reads the image when all others wait for it."""

        def read(self, handle: FileHandle) -> bytes:
            if "image" in handle.path:
                while self.reads < 3:
                    time.sleep(0.01)
                time.sleep(0.2)
            return super().read(handle)

    files = Slow()
    full = take(task, files)
    stamp, results = Stamp(7, "restored"), list[Stamp | None]()

    def restore() -> None:
        store = make_backend(LMDB_IMAGE).open(tmp_path / "target")
        restore_into(store, KeyedShare.of([full], ALL), files, stamp)
        results.append(store.stamp())
        store.close()

    threads = [threading.Thread(target=restore) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert results == [stamp] * 3
    assert files.reads == 3 + 1, "what is on top, and the image once"
    again = Subtask(LMDB_IMAGE, tmp_path / "target")
    assert content(again, KEYS) == content(task, KEYS)
    again.close()


def test_a_forked_process_does_not_end_what_is_pinned_here(task: Subtask, files: MemoryFiles, tmp_path: Path) -> None:
    prepared = [prepare(task)]
    task.next_epoch()
    expected = content(task, KEYS)
    child = multiprocessing.get_context("fork").Process(target=_in_child, args=(tmp_path / "child", prepared))
    child.start()
    child.join(30)
    assert child.exitcode == 0
    for _ in range(3):
        # Enough to use every page again that nobody has pinned.
        task.store.delete_range(LOWEST, b"\x80")
        task.next_epoch()
    again = restored(LMDB_IMAGE, tmp_path / "target", [async_write(prepared[0], files, "keyed")], files)
    assert content(again, KEYS) == expected
    again.close()


def _in_child(directory: Path, prepared: list[PreparedSnapshot]) -> None:
    store = make_backend(LMDB_IMAGE).open(directory)
    store.load([], START)
    prepared[0].release()
    prepared.clear()
    gc.collect()
    store.close()


_ends = st.binary(min_size=1, max_size=3)
_batches = st.dictionaries(st.one_of(_ends, _ends.map(lambda end: b"k" * 500 + end)), st.one_of(st.none(), _ends))


@given(st.lists(_batches, max_size=5), st.booleans())
def test_entries_are_loaded_in_any_order(batches: list[dict[bytes, bytes | None]], in_order: bool) -> None:
    """Those in order are appended, which LMDB does not check."""
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
