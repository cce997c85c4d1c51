"""Rows of a transaction, durable and invisible, until they are published.

A staged file is a sequence of frames: four bytes with the length of what follows, and the rows of one batch as their
sink encodes them. Files lie where those of a ``FileSink`` would, below the staging directory of the sink.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import xxhash

from holdfast.connectors.file_access import size_of
from holdfast.connectors.file_sink.naming import job_folder, staged_transaction, staging_folder, staging_path
from holdfast.errors import CorruptFileError, TransactionError
from holdfast.runtime.sink import TransactionName
from holdfast.storage.checksum import check_file
from holdfast.storage.filesystem import Storage

_SUFFIX = ".records"
_VERSION = 1


class StagedRows(msgspec.Struct, frozen=True):
    """A handle: what was staged, and where. A later version of the program may stage elsewhere."""

    #: Of the sink that knows what frames hold.
    kind: str
    root: str
    name: TransactionName
    size: int
    checksum: str
    version: int = _VERSION

    def encode(self) -> bytes:
        return msgspec.msgpack.encode(self)

    @staticmethod
    def decode(data: bytes, kind: str) -> StagedRows:
        """TransactionError unless it is the handle of a sink of this kind."""
        try:
            handle = msgspec.msgpack.decode(data, type=StagedRows)
        except (msgspec.MsgspecError, ValueError) as cause:
            raise _foreign(data, kind, str(cause)) from cause
        if handle.kind != kind:
            raise _foreign(data, kind, f"it is one of a {handle.kind}")
        if handle.version != _VERSION:
            raise TransactionError(
                f"A {kind} handle has version {handle.version}; this version of Holdfast reads {_VERSION}. "
                "Commit it with the version that wrote it."
            )
        return handle

    def is_there(self) -> bool:
        """False when it was published, or aborted, or lost."""
        return size_of(Storage.for_uri(self.root), self._path) is not None

    def check(self) -> None:
        """TransactionError unless the file is what was written."""
        storage = Storage.for_uri(self.root)
        try:
            check_file(storage, self._path, self.size, self.checksum)
        except CorruptFileError as cause:
            raise TransactionError(
                f"The rows of {self.name} cannot be published: {cause}. Restore an earlier checkpoint; nothing of "
                "this transaction was published."
            ) from cause

    def frames(self) -> Iterator[bytes]:
        with Storage.for_uri(self.root).open_input(self._path) as stream:
            while head := stream.read(4):
                yield stream.read(int.from_bytes(head, "big"))

    def delete(self) -> None:
        Storage.for_uri(self.root).delete(self._path)

    @property
    def _path(self) -> str:
        return staging_path(self.name, 0, _SUFFIX)


class StagingTransaction:
    """Rows of one task in one epoch, on their way into a file."""

    def __init__(self, kind: str, storage: Storage, name: TransactionName) -> None:
        self._kind = kind
        self._storage = storage
        self._name = name
        self._output: Any = None
        self._stream: Any = None
        self._digest = xxhash.xxh3_128()
        self._size = 0

    def write(self, frame: bytes) -> None:
        if self._stream is None:
            self._output = self._storage.open_output(staging_path(self._name, 0, _SUFFIX))
            self._stream = self._output.__enter__()
        for part in (len(frame).to_bytes(4, "big"), frame):
            self._stream.write(part)
            self._digest.update(part)
            self._size += len(part)

    def finish(self) -> StagedRows | None:
        """Make the file durable; None when no row was written."""
        if self._stream is None:
            return None
        self._output.__exit__(None, None, None)
        return StagedRows(self._kind, self._storage.uri, self._name, self._size, self._digest.hexdigest())

    def discard(self) -> None:
        if self._stream is not None:
            # An error is how a storage learns that nothing is to be published.
            reason = _Discarded()
            self._output.__exit__(type(reason), reason, None)


class _Discarded(Exception):
    """The way out of a block whose file is not wanted; no error."""


def staged_names(storage: Storage, job_id: str) -> Iterable[TransactionName]:
    """Transactions of a job that have files here, also those that were not written to their end."""
    entries = storage.list(job_folder(job_id), recursive=True, temporaries=True)
    names = {staged_transaction(job_id, entry.path) for entry in entries if not entry.is_dir}
    return sorted(name for name in names if name is not None)


def delete_staged(storage: Storage, name: TransactionName) -> None:
    for entry in storage.list(staging_folder(name), temporaries=True):
        if staged_transaction(name.job_id, entry.path) == name:
            storage.delete(entry.path)


def _foreign(data: bytes, kind: str, why: str) -> TransactionError:
    return TransactionError(
        f"A handle of {len(data)} bytes is none of a {kind} ({why}). "
        "Restore with the sink that wrote the checkpoint, or give this operator another uid."
    )
