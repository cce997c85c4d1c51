"""Images of an LMDB store when something goes wrong: damage, a full disk, other processes."""

from __future__ import annotations

import errno
import gc
import multiprocessing
import os
import resource
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from holdfast.errors import CheckpointError, CorruptFileError, RestoreError, StateError
from holdfast.state.handles import FileHandle
from holdfast.state.lmdb import environments, image
from holdfast.state.lmdb import snapshot as lmdb_snapshot
from holdfast.state.restore import KeyedShare, restore_into
from holdfast.state.snapshots import async_write
from holdfast.state.store import Stamp
from holdfast.state.strategies import PreparedSnapshot
from holdfast.testing.contracts.stores import LOWEST
from tests.state.backend_under_test import Subtask
from tests.state.snapshot_memory import MemoryFiles
from tests.state.stores import LMDB_IMAGE, make_backend
from tests.state.test_lmdb_images import KEYS, START, TARGETS, prepare, subtask_in, take
from tests.state.test_snapshots import ALL, content, restored


@pytest.fixture
def files() -> MemoryFiles:
    return MemoryFiles()


@pytest.fixture
def task(tmp_path: Path) -> Iterator[Subtask]:
    subtask = subtask_in(tmp_path / "source")
    yield subtask
    subtask.close()


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
    with pytest.raises(RestoreError, match=r"'leveldb', which none of the state backends here .*\(.*lmdb, .*rocksdb\)"):
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




def test_a_disk_without_links_is_restored_by_entries(
    task: Subtask, files: MemoryFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = take(task, files)

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(os, "link", refused)
    found = restored(LMDB_IMAGE, tmp_path / "target", [full], files)
    assert content(found, KEYS) == content(task, KEYS)
    found.close()


def test_without_room_for_a_copy_entries_are_stored(
    task: Subtask, files: MemoryFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lmdb_snapshot, "_has_room", lambda directory, size: False)
    full = take(task, files)
    assert full.native is None and full.stands_alone


def _die_with_a_view(directory: Path, base: Stamp) -> None:
    store = make_backend(LMDB_IMAGE).open(directory)
    store.begin(base)
    pinned = store.pin()  # type: ignore[attr-defined]  # a store of LMDB
    assert pinned is not None
    # Of a writer that dies LMDB itself takes notice.
    store.rollback()
    os.kill(os.getpid(), signal.SIGKILL)


def test_pages_are_used_again_when_a_process_dies_with_a_view_of_them(tmp_path: Path) -> None:
    store, stamp = make_backend(LMDB_IMAGE).open(tmp_path / "store"), Stamp(0, "n")
    keys = [b"\0\1\0\1%05d" % number for number in range(2000)]
    store.load([], stamp)

    def epochs(count: int) -> int:
        nonlocal stamp
        for _ in range(count):
            store.begin(stamp)
            store.write([(key, os.urandom(100)) for key in keys])
            store.forget_changes(stamp.epoch)
            stamp = Stamp(stamp.epoch + 1, "n")
            store.commit(stamp)
        return (tmp_path / "store" / environments.DATA_FILE).stat().st_size

    before = epochs(5)
    dying = multiprocessing.get_context("spawn").Process(target=_die_with_a_view, args=(tmp_path / "store", stamp))
    dying.start()
    dying.join(60)
    assert dying.exitcode == -signal.SIGKILL
    assert epochs(20) < 2 * before
    store.close()
