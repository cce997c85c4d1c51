"""Rows of a transaction, durable and invisible, until they are published.

A staged file is a sequence of frames: four bytes with the length of what follows, and the rows of one batch as their
sink encodes them. Files lie where those of a ``FileSink`` would, below the staging directory of the sink.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from holdfast.connectors.file_access import size_of
from holdfast.connectors.output_file import OutputFile
from holdfast.connectors.staged_files import staging_path
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
        self._file: OutputFile | None = None

    def write(self, frame: bytes) -> None:
        if self._file is None:
            self._file = OutputFile(self._storage, staging_path(self._name, 0, _SUFFIX))
        self._file.stream.write(len(frame).to_bytes(4, "big"))
        self._file.stream.write(frame)

    def finish(self) -> StagedRows | None:
        """Make the file durable; None when no row was written."""
        if self._file is None:
            return None
        with self._file:
            pass  # It is durable when its block ends.
        _, size, checksum = self._file.written()
        return StagedRows(self._kind, self._storage.uri, self._name, size, checksum)

    def discard(self) -> None:
        if self._file is not None:
            self._file.discard()


def _foreign(data: bytes, kind: str, why: str) -> TransactionError:
    return TransactionError(
        f"A handle of {len(data)} bytes is none of a {kind} ({why}). "
        "Restore with the sink that wrote the checkpoint, or give this operator another uid."
    )
