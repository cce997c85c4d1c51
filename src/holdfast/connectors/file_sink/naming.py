"""Where a transaction's files are before and after its commit, and what its handle says.

Staging: ``<path>/_holdfast_staging/<job>/<operator>/<attempt>-<epoch>-<subtask>-<nonce>[.<n>]<suffix>``.
Committed: ``<path>/[<bucket>/]<prefix>-<operator's hash>-<attempt>-<epoch>-<subtask>-<nonce>[-<n>]<suffix>``.
The number is there from a transaction's second file on. A file that stays in staging for a later transaction has an
empty one beside it, of its name and ``.held``, from the moment that a completed checkpoint holds it: it is then no open
transaction any more. Should that one be lost: the handles of each checkpoint name everything that waits.
"""

from __future__ import annotations

from urllib.parse import quote, unquote

import msgspec
import xxhash

from holdfast.errors import TransactionError
from holdfast.runtime.sink import TransactionName
from holdfast.storage.filesystem import final_name

#: Begins with an underscore, so that readers of the sink's path leave it out.
STAGING = "_holdfast_staging"
HELD = ".held"
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


def job_folder(job_id: str) -> str:
    return f"{STAGING}/{quote(job_id, safe='')}"


def job_of(path: str) -> str:
    """The job that a file in staging belongs to."""
    return unquote(path.split("/")[1])


def staging_folder(name: TransactionName) -> str:
    return f"{job_folder(name.job_id)}/{quote(name.operator_id, safe='')}"


def staging_path(name: TransactionName, number: int, suffix: str) -> str:
    part = f".{number}" if number else ""
    return f"{staging_folder(name)}/{_stem(name)}{part}{suffix}"


def committed_name(name: TransactionName, number: int, prefix: str, suffix: str) -> str:
    operator = xxhash.xxh32_hexdigest(name.operator_id.encode())
    part = f"-{number}" if number else ""
    return f"{prefix}-{operator}-{_stem(name)}{part}{suffix}"


def staged_transaction(job_id: str, path: str) -> TransactionName | None:
    """The transaction that a file in staging belongs to, also when it was not written to its end; None for a foreign
    file."""
    folder, _, file_name = path.rpartition("/")
    stem = (final_name(file_name) or file_name).partition(".")[0]
    try:
        attempt, epoch, subtask, nonce = stem.split("-", 3)
        operator_id = unquote(folder.rpartition("/")[2])
        return TransactionName(job_id, operator_id, int(subtask), int(attempt), int(epoch), nonce)
    except ValueError:
        return None


def _stem(name: TransactionName) -> str:
    if not name.nonce or "." in name.nonce or "/" in name.nonce:
        raise TransactionError(f"The nonce {name.nonce!r} of a transaction must be a part of a file name without '.'.")
    return f"{name.attempt}-{name.epoch}-{name.subtask}-{name.nonce}"
