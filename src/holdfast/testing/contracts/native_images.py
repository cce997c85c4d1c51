"""What every state backend must do whose snapshots may be files of its own."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import msgspec
import pytest

from holdfast.errors import CorruptFileError
from holdfast.state.handles import KeyedSnapshot, NativeFile
from holdfast.state.heap.backend import HeapBackend
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.store import Stamp, StateBackend
from holdfast.testing.contracts import keyed_subtask as keyed
from holdfast.testing.contracts.backends import StateBackendContract


class NativeImageContract(StateBackendContract):
    """The suite of ``StateBackendContract``, and that of native images. The backend is to make them of few keys too."""

    #: How many keys a snapshot has, from which there are to be images.
    image_keys: ClassVar[int] = 400

    @pytest.fixture
    def keys(self) -> range:
        return range(self.image_keys)

    @pytest.fixture
    def as_files_only(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """No entry of an image is read."""
        monkeypatch.delattr("holdfast.state.restore.backend_of_images")

    def test_it_declares_them(self, backend: StateBackend) -> None:
        assert backend.capabilities.native_images

    @pytest.mark.usefixtures("as_files_only")
    def test_an_image_is_taken_as_it_is(self, backend: StateBackend, tmp_path: Path, keys: range) -> None:
        full, expected = self._image(backend, tmp_path, keys)
        assert full.stands_alone and full.has_entries
        again = keyed.restored(backend, tmp_path / "again", [full], tmp_path)
        assert keyed.content_of(again, keys) == expected
        assert keyed.fired(again) == [(key, key) for key in keys]
        keyed.fill(again, [len(keys)])
        again.next_epoch()
        assert again.store.changes_since(again.stamp.epoch - 1) is not None, "changes are known from there on"
        again.close()

    @pytest.mark.parametrize("by_itself", [True, False])
    def test_entries_of_an_image_are_read_by_key_groups(
        self, backend: StateBackend, tmp_path: Path, keys: range, by_itself: bool
    ) -> None:
        full, expected = self._image(backend, tmp_path, keys)
        reads = backend if by_itself else HeapBackend()
        found: dict[int, object] = {}
        for half in (KeyGroupRange(0, 63), KeyGroupRange(64, keyed.MAX_PARALLELISM - 1)):
            directory = tmp_path / f"from {half.start}"
            again = keyed.restored(reads, directory, [full], tmp_path, half)
            mine = keyed.content_of(again, keyed.owned(again, keys))
            assert mine and not found.keys() & mine.keys()
            found |= mine
            assert list(directory.rglob("image-*")) == [], "the files of the image are gone"
            again.close()
        assert found == expected

    @pytest.mark.parametrize("by_itself", [True, False])
    def test_changes_are_applied_to_an_image(
        self, backend: StateBackend, tmp_path: Path, keys: range, by_itself: bool
    ) -> None:
        task = self._subtask(backend, tmp_path / "source")
        keyed.fill(task, keys)
        full = keyed.checkpoint(task, tmp_path, 1)
        keyed.fill(task, range(len(keys), len(keys) + 3))
        keyed.clear(task, keys[:2])
        newer = keyed.checkpoint(task, tmp_path, 2, base=1)
        more = range(len(keys) + 4)
        expected = keyed.content_of(task, more)
        reads = backend if by_itself else HeapBackend()
        again = keyed.restored(reads, tmp_path / "again", [keyed.chain(full, newer)], tmp_path)
        assert keyed.content_of(again, more) == expected
        assert keyed.fired(again) == [(key, key) for key in range(len(keys) + 3)]
        for one in (task, again):
            one.close()

    def test_an_image_is_of_the_moment_when_it_was_prepared(
        self, backend: StateBackend, tmp_path: Path, keys: range
    ) -> None:
        task = self._subtask(backend, tmp_path / "source")
        keyed.fill(task, keys)
        task.next_epoch()
        keyed.fill(task, [len(keys)])
        expected = keyed.content_of(task, range(len(keys) + 1))
        prepared = keyed.prepare(task, 1)
        task.next_epoch()
        keyed.clear(task, keys)
        task.next_epoch()
        full = keyed.write(prepared, tmp_path, 1)
        prepared.release()
        again = keyed.restored(backend, tmp_path / "again", [full], tmp_path)
        assert keyed.content_of(again, range(len(keys) + 1)) == expected
        for one in (task, again):
            one.close()

    def test_an_empty_store_has_no_entries(self, backend: StateBackend, tmp_path: Path) -> None:
        task = self._subtask(backend, tmp_path / "source")
        empty = keyed.checkpoint(task, tmp_path, 1)
        assert empty.stands_alone and not empty.has_entries
        again = keyed.restored(backend, tmp_path / "again", [empty], tmp_path)
        assert again.backend.states_meta() == ()
        for one in (task, again):
            one.close()

    @pytest.mark.parametrize("by_itself", [True, False])
    @pytest.mark.parametrize("damage", ["missing", "changed", "short"])
    def test_a_damaged_file_is_named(
        self, backend: StateBackend, tmp_path: Path, keys: range, damage: str, by_itself: bool
    ) -> None:
        full, _ = self._image(backend, tmp_path, keys)
        reads = backend if by_itself else HeapBackend()
        for number, file in enumerate(_stored_files(full)):
            path = tmp_path / file.handle.path
            data = path.read_bytes()
            if damage == "missing":
                path.unlink()
            else:
                path.write_bytes(data[:-1] if damage == "short" else bytes([data[0] ^ 1]) + data[1:])
            target = tmp_path / f"damaged {number}"
            with pytest.raises(CorruptFileError, match=file.handle.path):
                keyed.restored(reads, target, [full], tmp_path)
            assert reads.open(target).stamp() != Stamp(7, "restored"), "nobody goes on with the half of it"
            path.write_bytes(data)

    def _image(
        self, backend: StateBackend, tmp_path: Path, keys: range
    ) -> tuple[KeyedSnapshot, dict[int, object]]:
        """A full checkpoint, and what it is to hold. Its changes since the last commit may be files of entries."""
        task = self._subtask(backend, tmp_path / "source")
        keyed.fill(task, keys)
        task.next_epoch()
        full = keyed.checkpoint(task, tmp_path, 1)
        assert full.native is not None, "a full checkpoint is an image"
        assert full.native.engine == backend.name, "by which the backend is found that reads it"
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(full), type=KeyedSnapshot) == full
        expected = keyed.content_of(task, keys)
        task.close()
        return full, expected


def _stored_files(snapshot: KeyedSnapshot) -> list[NativeFile]:
    """Files of the image that are not in the metadata themselves: the first, the last and one between."""
    assert snapshot.native is not None
    files = [file for file in snapshot.native.files if file.handle.path]
    assert files, "an image of so many keys is more than goes into the metadata; set image_keys"
    return list({file.name: file for file in (files[0], files[len(files) // 2], files[-1])}.values())
