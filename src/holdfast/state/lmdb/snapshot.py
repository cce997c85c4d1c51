"""Full snapshots of an LMDB store by its own file.

What is pinned is a reading transaction: it sees the last commit, which the running epoch is based on, while later ones
go on. What that epoch has changed is stored as changed keys on top. So a full image costs the task no more than a delta
does, however large the state is, and a restore of the same key groups little more than to copy the file.

The copy has the pages in use, those of the epoch records among them, and no others. It is made before the first of its
pieces is uploaded, so that pages which later commits give up do not wait for the storage.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

import lmdb
import msgspec

from holdfast.errors import CheckpointError
from holdfast.state.entry_strategies import Changes, PreparedEntries
from holdfast.state.handles import CheckpointRequest, KeyedSnapshot, NativeFile, NativeImage
from holdfast.state.keyed_backend import KeyedStateBackend
from holdfast.state.layout import group_bytes, groups_end
from holdfast.state.lmdb.environments import Pin
from holdfast.state.lmdb.epochs import EpochTable
from holdfast.state.lmdb.image import ENGINE, PIECE_BYTES, encode_piece
from holdfast.state.lmdb.rows import scan
from holdfast.state.snapshot_io import SnapshotWriter
from holdfast.state.strategies import PreparedSnapshot, SnapshotStrategy, empty_frame

if TYPE_CHECKING:
    from holdfast.state.lmdb.store import LmdbStore

#: Smaller stores are stored as entries, which take less, fit checkpoints in memory, are read by part, and are loaded
#: within a tenth of a second.
IMAGES_FROM_BYTES = 4 << 20
#: What is stored beside the state itself, records and changed keys, is no more than this, or than this share of it.
_FEW_BYTES, _SHARE = 1 << 20, 0.5


@dataclass(frozen=True)
class NativeFull(SnapshotStrategy):
    """The file of the database. Not where expired entries are to be left out of full images: they are in the file."""

    store: LmdbStore
    #: The size of a store from which it is done.
    least_bytes: int

    name = "native-full"

    def prepare(
        self, backend: KeyedStateBackend, request: CheckpointRequest, base_epoch: int | None
    ) -> PreparedSnapshot | None:
        # The copy of a pinned view is a patch of LMDB's, which builds on a system's own library may lack.
        if backend.ttl.filters_full_images or not lmdb.version(subpatch=True)[-1]:
            return None
        pinned = self.store.pin()
        if pinned is None:
            return None
        pin, marks = pinned
        environment, pages = pin.environment, EpochTable(pin.txn, pin.environment.epochs)
        size = pages.size_of(environment.data)
        most = max(_FEW_BYTES, _SHARE * size)
        copied = size + pages.size_of(environment.epochs)
        if size >= self.least_bytes and copied <= size + most and _has_room(environment.path, copied):
            changes = Changes.read(backend, marks)
            if changes.size() <= most:
                on_top = changes.prepared(self.name, request.checkpoint_id, empty_frame(backend))
                key_groups = backend.scope.key_groups
                found = next(scan(pin.txn, group_bytes(key_groups.start), groups_end(key_groups.end)), None)
                return PreparedImage(self.name, pin, on_top, found is None)
        pin.end()
        return None


def _has_room(directory: str, size: int) -> bool:
    """Whether a copy can be beside the store for a while, and leave as much for what is written meanwhile."""
    return shutil.disk_usage(directory).free >= 2 * size


@dataclass(frozen=True)
class PreparedImage(PreparedSnapshot):
    """The last commit before the snapshot, and what has changed since."""

    strategy: str
    pin: Pin
    on_top: PreparedEntries
    #: No state has an entry in the image.
    empty: bool

    def write(
        self, writer: SnapshotWriter, name: str, shared: bool, heartbeat: Callable[[], None] | None
    ) -> KeyedSnapshot:
        pieces: list[NativeFile] = []
        folder = Path(self.pin.environment.path)
        # Where the store is gone its job has ended, but what it has pinned is still to be stored.
        with tempfile.TemporaryFile(dir=folder if folder.exists() else None) as copy:
            self._copy(copy)
            self.release()
            copy.seek(0)
            for number, data in enumerate(iter(partial(copy.read, PIECE_BYTES), b"")):
                if heartbeat is not None:
                    heartbeat()
                handle = writer.write(f"{name}-image-{number}", encode_piece(data), shared)
                pieces.append(NativeFile(f"{number:06}", handle, self.on_top.checkpoint_id))
        written = self.on_top.write(writer, name, shared, heartbeat)
        return msgspec.structs.replace(written, native=NativeImage(ENGINE, tuple(pieces), self.empty))

    def release(self) -> None:
        self.pin.end()

    def _copy(self, file: IO[bytes]) -> None:
        try:
            self.pin.environment.handle.copyfd(file.fileno(), compact=True, txn=self.pin.txn)
        except lmdb.Error as error:
            raise CheckpointError(
                f"The store {self.pin.environment.path} cannot be copied for a checkpoint: {error}. Check the space "
                "left on its disk, which the copy takes for a moment."
            ) from error
