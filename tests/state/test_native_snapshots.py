"""Snapshots of a RocksDB store by its own files, and their restore into every backend."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from holdfast.errors import CorruptFileError
from holdfast.state.handles import CheckpointRequest, KeyedSnapshot, NativeFile, SnapshotType
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.keys import KeyCodec
from holdfast.state.regrouping import Regrouping
from holdfast.state.restore import KeyedShare, RestoreForecast, restore_into
from holdfast.state.rocksdb.images import LocalImages
from holdfast.state.snapshot_files import FileSnapshotReader, FileSnapshotWriter
from holdfast.state.snapshot_io import CountingReader
from holdfast.state.snapshots import async_write, sync_prepare
from holdfast.state.store import Stamp
from holdfast.testing.contracts.keyed_subtask import MAX_PARALLELISM, scope_of
from holdfast.types.resolve import resolve
from tests.state.backend_under_test import Subtask
from tests.state.snapshot_memory import chain
from tests.state.stores import BACKENDS, make_backend
from tests.state.test_snapshots import ALL, content, fill, fired

KEYS = range(400)


@pytest.fixture
def task(tmp_path: Path) -> Iterator[Subtask]:
    subtask = Subtask("rocksdb", tmp_path / "source")
    yield subtask
    subtask.close()


@pytest.fixture
def storage(tmp_path: Path) -> str:
    return str(tmp_path / "storage")


def snapshot(task: Subtask, storage: str, number: int, base: int | None = None) -> KeyedSnapshot:
    """Taken and stored; the epoch is committed, so that its number is a base for the next one."""
    request = CheckpointRequest(number, SnapshotType.CHECKPOINT, 0, 1, task.stamp.epoch + 1, base)
    prepared = sync_prepare(task.backend, request, "counter", 0)
    task.next_epoch()
    return async_write(prepared, FileSnapshotWriter(storage, number, 1, 0), "keyed")


def files_of(snapshot: KeyedSnapshot, number: int | None = None) -> list[NativeFile]:
    assert snapshot.native is not None and not snapshot.files
    return [file for file in snapshot.native.files if number in (None, file.checkpoint_id)]


def tables(files: list[NativeFile]) -> set[str]:
    return {file.name for file in files if file.name.endswith(".sst")}


def restored(
    name: str, directory: Path, found: list[KeyedSnapshot], storage: str, key_groups: KeyGroupRange = ALL
) -> Subtask:
    store, share = make_backend(name).open(directory), KeyedShare.of(found, key_groups)
    reader = CountingReader(FileSnapshotReader(storage))
    restore_into(store, share, reader, Stamp(7, "restored"), scratch=directory)
    assert RestoreForecast(FileSnapshotReader(storage)).bytes_of(share) == reader.bytes_read
    store.close()
    return Subtask(name, directory, scope_of(key_groups=key_groups))


@pytest.mark.parametrize("target", BACKENDS)
def test_rocksdb_every_backend_takes_it(task: Subtask, storage: str, tmp_path: Path, target: str) -> None:
    fill(task, KEYS)
    full = snapshot(task, storage, 1)
    assert full.has_entries and full.stands_alone and files_of(full, 1) == files_of(full)
    again = restored(target, tmp_path / "target", [full], storage)
    assert content(again, KEYS) == content(task, KEYS)
    assert fired(again) == [(key, key) for key in KEYS]
    assert [path for path in (tmp_path / "target").rglob("image-*")] == []
    again.close()


def test_rocksdb_only_new_files_are_stored_and_the_next_store_goes_on(
    task: Subtask, storage: str, tmp_path: Path
) -> None:
    fill(task, KEYS)
    first = snapshot(task, storage, 1)
    fill(task, range(400, 404))
    second = snapshot(task, storage, 2, base=1)
    assert tables(files_of(first)) < tables(files_of(second))
    assert len(tables(files_of(second, 2))) <= 2, "one of the commit, one of the checkpoint"
    assert sum(file.handle.size for file in files_of(second, 2)) < sum(f.handle.size for f in files_of(first)) / 2
    again = restored("rocksdb", tmp_path / "target", [second], storage)
    fill(again, range(404, 406))
    third = snapshot(again, storage, 3, base=7)
    assert tables(files_of(second)) < tables(files_of(third)), "a restored store knows what is stored"
    assert len(tables(files_of(third, 3))) <= 2
    last = restored("rocksdb", tmp_path / "last", [third], storage)
    assert content(last, range(410)) == content(again, range(410))
    for one in (again, last):
        one.close()


def test_rocksdb_an_empty_store(task: Subtask, storage: str, tmp_path: Path) -> None:
    empty = snapshot(task, storage, 1)
    assert empty.stands_alone and not empty.has_entries
    again = restored("rocksdb", tmp_path / "target", [empty], storage)
    assert again.backend.states_meta() == ()
    again.close()


@pytest.mark.parametrize("case", ["replaced", "not stored", "gone"])
def test_rocksdb_a_name_alone_is_not_trusted(task: Subtask, storage: str, tmp_path: Path, case: str) -> None:
    """The base's image is changed behind the store's back: what is not surely the same is stored again."""
    fill(task, KEYS)
    first = snapshot(task, storage, 1)
    (image,) = LocalImages(tmp_path / "source").all()
    for name in tables(files_of(first)):
        if case == "replaced":
            data = (image.database / name).read_bytes()
            (image.database / name).unlink()
            (image.database / name).write_bytes(data)
    if case == "not stored":
        (image.folder / "stored").unlink()
    elif case == "gone":
        image.drop()
    fill(task, range(3))
    second = snapshot(task, storage, 2, base=1)
    if case == "replaced":
        # No file is held, but the base still is: what changed takes less than all files anew.
        assert second.native is None and len(second.files) == 1
        (newest,) = (one for one in LocalImages(tmp_path / "source").all() if one.folder != image.folder)
        assert newest.stored == ()
    else:
        assert files_of(second, 2) == files_of(second)
    again = restored("rocksdb", tmp_path / "target", [chain(first, second)], storage)
    assert content(again, KEYS) == content(task, KEYS)
    again.close()


@pytest.mark.parametrize("target", BACKENDS)
@pytest.mark.parametrize("damage", ["missing", "changed", "short"])
def test_rocksdb_a_damaged_file_is_named(task: Subtask, storage: str, tmp_path: Path, target: str, damage: str) -> None:
    fill(task, KEYS)
    full = snapshot(task, storage, 1)
    for number, file in enumerate(file for file in files_of(full) if file.handle.size):
        path = Path(storage) / file.handle.path
        data = path.read_bytes()
        if damage == "missing":
            path.unlink()
        elif damage == "changed":
            path.write_bytes(data[:-1] + bytes((data[-1] ^ 1,)))
        else:
            path.write_bytes(data[:-1])
        with pytest.raises(CorruptFileError, match=str(path)):
            restored(target, tmp_path / f"target-{number}", [full], storage)
        path.write_bytes(data)
    restored(target, tmp_path / "target", [full], storage).close()


def test_rocksdb_images_live_as_long_as_they_are_of_use(task: Subtask, storage: str, tmp_path: Path) -> None:
    images = LocalImages(tmp_path / "source")
    fill(task, KEYS)
    snapshot(task, storage, 1)
    snapshot(task, storage, 2, base=1)
    assert sorted(one.stamp.epoch for one in images.all() if one.stamp is not None) == [1, 2]
    task.store.forget_changes(2)
    (kept,) = images.all()
    assert kept.stamp == Stamp(2, "nonce-2")
    request = CheckpointRequest(3, SnapshotType.CHECKPOINT, 0, 1, task.stamp.epoch + 1, 2)
    sync_prepare(task.backend, request, "counter", 0)
    assert len(images.all()) == 2
    task.store.rollback()
    assert images.all() == [kept], "an epoch that was dropped leaves nothing"


def test_rocksdb_the_image_of_an_execution_that_was_not_accepted_goes(
    task: Subtask, storage: str, tmp_path: Path
) -> None:
    fill(task, KEYS)
    before = task.stamp
    snapshot(task, storage, 1)
    task.stamp = before
    task.restart()
    assert LocalImages(tmp_path / "source").all() == []
    fill(task, range(3))
    assert files_of(snapshot(task, storage, 2, base=1), 1) == []


def test_rocksdb_what_was_pinned_is_undone_with_its_epoch(task: Subtask, storage: str) -> None:
    fill(task, KEYS)
    task.next_epoch()
    before = content(task, KEYS)
    fill(task, range(400, 500))
    task.at(1)
    request = CheckpointRequest(3, SnapshotType.CHECKPOINT, 0, 1, task.stamp.epoch + 1)
    sync_prepare(task.backend, request, "counter", 0)
    task.restart()
    assert content(task, range(500)) == before | {key: (None, {}, []) for key in range(400, 500)}


@pytest.mark.parametrize("target", BACKENDS)
def test_rocksdb_deltas_of_changed_keys_on_top_of_a_database(
    task: Subtask, storage: str, tmp_path: Path, target: str
) -> None:
    """The strategy was configured anew between two attempts."""
    fill(task, KEYS)
    base = snapshot(task, storage, 1)
    keys = restored("rocksdb-keys", tmp_path / "keys", [base], storage)
    fill(keys, range(395, 410))
    delta = snapshot(keys, storage, 2, base=7)
    assert delta.native is None and len(delta.files) == 1
    composed = chain(base, delta)
    again = restored(target, tmp_path / "target", [composed], storage)
    assert content(again, range(410)) == content(keys, range(410))
    for one in (keys, again):
        one.close()


@pytest.mark.parametrize("target", BACKENDS)
def test_rocksdb_from_two_to_three_subtasks_and_back(storage: str, tmp_path: Path, target: str) -> None:
    ranges = [KeyGroupRange.of(subtask, MAX_PARALLELISM, 2) for subtask in range(2)]
    found, expected = [], {}
    for number, key_groups in enumerate(ranges):
        task = Subtask("rocksdb", tmp_path / f"old-{number}", scope_of(key_groups=key_groups))
        mine = [key for key in KEYS if group_of(key) in key_groups]
        fill(task, mine)  # type: ignore[arg-type]  # some of a range
        expected |= content(task, mine)  # type: ignore[arg-type]  # some of a range
        found.append(snapshot(task, storage, number + 1))
        task.close()
    seen = {}
    for subtask in range(3):
        key_groups = KeyGroupRange.of(subtask, MAX_PARALLELISM, 3)
        again = restored(target, tmp_path / f"new-{subtask}", found, storage, key_groups)
        mine = [key for key in KEYS if group_of(key) in key_groups]
        seen |= content(again, mine)  # type: ignore[arg-type]  # some of a range
        assert fired(again) == [(key, key) for key in mine]
        again.close()
    assert seen == expected


def group_of(key: int) -> int:
    codec = KeyCodec.for_type(resolve("bigint"))
    return int(codec.hash_many([key])[0] % MAX_PARALLELISM)


@pytest.mark.parametrize("target", BACKENDS)
def test_rocksdb_another_maximum_parallelism(task: Subtask, storage: str, tmp_path: Path, target: str) -> None:
    fill(task, KEYS)
    full = snapshot(task, storage, 1)
    codec = KeyCodec.for_type(resolve("bigint"))
    share = KeyedShare.of([full], KeyGroupRange(0, 63), Regrouping(codec, 64))
    store = make_backend(target).open(tmp_path / "target")
    restore_into(store, share, FileSnapshotReader(storage), Stamp(7, "restored"))
    store.close()
    scope = scope_of(key_groups=KeyGroupRange(0, 63))._replace(max_parallelism=64)
    again = Subtask(target, tmp_path / "target", scope)
    assert content(again, KEYS) == content(task, KEYS)
    again.close()


def test_rocksdb_a_copy_of_the_host_s_image_and_its_next_snapshot(task: Subtask, storage: str, tmp_path: Path) -> None:
    fill(task, KEYS)
    first = snapshot(task, storage, 1)
    expected, stamp = content(task, KEYS), task.stamp
    fill(task, range(300, 800))
    task.next_epoch()
    backend = make_backend("rocksdb")
    assert not backend.copy(tmp_path / "source", tmp_path / "other", Stamp(1, "of another execution"))
    assert backend.copy(tmp_path / "source", tmp_path / "copy", stamp)
    again = Subtask("rocksdb", tmp_path / "copy")
    assert again.stamp == stamp and content(again, KEYS) == expected
    fill(again, range(2))
    assert tables(files_of(first)) < tables(files_of(snapshot(again, storage, 2, base=1)))
    again.close()
    shutil.rmtree(tmp_path / "copy")
    task.at(1)
    assert content(task, KEYS)[399] == ((399, 399), {1: "one", 2: "399"}, ["399", "x"] * 2), "the original lives on"


def test_rocksdb_metadata_of_a_database_survives_encoding(task: Subtask, storage: str) -> None:
    fill(task, KEYS)
    full = snapshot(task, storage, 1)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(full), type=KeyedSnapshot) == full
