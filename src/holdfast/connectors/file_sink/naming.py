"""Names of the files that a ``FileSink`` commits, and what its handles say.

Committed: ``<path>/[<bucket>/]<prefix>-<operator's hash>-<attempt>-<epoch>-<subtask>-<nonce>[-<n>]<suffix>``, with the
number from a transaction's second file on. Before that they are in staging (``connectors/staged_files``).
"""

from __future__ import annotations

import msgspec
import xxhash

from holdfast.connectors.staged_files import job_of, staged_transaction, stem_of
from holdfast.errors import TransactionError
from holdfast.runtime.sink import TransactionName

_VERSION = 1


class StagedFile(msgspec.Struct, frozen=True):
    """One complete file; both paths are relative to the sink's."""

    staging: str
    final: str
    size: int
    checksum: str


class Statement(msgspec.Struct, frozen=True):
    """What a subtask says of its buckets, at a checkpoint."""

    #: Of each bucket that it wrote rows to and has not taken leave of: whether it is done with it.
    finished: dict[str, bool]
    #: No more rows will come to this subtask, which is one of so many.
    ended: bool
    subtasks: int


class FileHandle(msgspec.Struct, frozen=True):
    """What commits a transaction. It names the sink's path, which a later version of the program may have changed."""

    root: str
    name: TransactionName
    files: list[StagedFile]
    #: Paths of staged files that wait for a later transaction.
    held: list[str] = []
    #: Root and path of staged files whose rows are in ``files``.
    consumed: list[tuple[str, str]] = []
    #: Whether finished buckets are marked.
    marks: bool = False
    statement: Statement | None = None
    #: Paths of all staged files that wait behind a checkpoint, whichever transaction wrote them. None of a handle
    #: before 0.2.0.
    waiting: list[str] | None = None
    version: int = _VERSION

    def encode(self) -> bytes:
        return msgspec.msgpack.encode(self)

    def needs(self) -> set[TransactionName]:
        """The transactions that wrote the staged files which this handle publishes, or leaves for later."""
        paths = {*(file.staging for file in self.files), *self.held, *(self.waiting or ())}
        found = {staged_transaction(job_of(path), path) for path in paths}
        return {self.name, *(name for name in found if name is not None)}

    @staticmethod
    def decode(data: bytes) -> FileHandle:
        try:
            handle = msgspec.msgpack.decode(data, type=FileHandle)
        except (msgspec.MsgspecError, ValueError) as cause:
            raise TransactionError(
                f"A handle of {len(data)} bytes is none of a FileSink ({cause}). "
                "Restore with the sink that wrote the checkpoint, or give this operator another uid."
            ) from cause
        if handle.version != _VERSION:
            raise TransactionError(
                f"A FileSink handle has version {handle.version}; this version of Holdfast reads {_VERSION}. "
                "Commit it with the version that wrote it."
            )
        return handle


def committed_name(name: TransactionName, number: int, prefix: str, suffix: str) -> str:
    operator = xxhash.xxh32_hexdigest(name.operator_id.encode())
    part = f"-{number}" if number else ""
    return f"{prefix}-{operator}-{stem_of(name)}{part}{suffix}"
