"""The driver's half of a file sink: what a commit does with files, and the markers of finished buckets.

Every step may be done again. Files are moved first; then those that wait are marked, so that nobody takes them for
leftovers of a crash; then what was joined is deleted; then buckets are marked as finished. A file that waited in one
transaction and was joined by a later one of the same commit is not marked any more: the commit may be a repetition,
and the file long gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.connectors.file_access import make_durable, size_of
from holdfast.connectors.file_sink.naming import FileHandle, StagedFile, Statement
from holdfast.connectors.staged_files import HELD
from holdfast.errors import CorruptFileError, TransactionError
from holdfast.failpoints import failpoint
from holdfast.runtime.sink import TransactionName
from holdfast.storage.checksum import check_file
from holdfast.storage.filesystem import Storage

#: In a bucket: no more rows are expected. In the sink's path: the job has ended.
SUCCESS = "_SUCCESS"


def publish(own: Storage, handles: Sequence[FileHandle], verify: bool) -> None:
    """Commit transactions of the sink whose path ``own`` is, or was another. With ``verify``, files still in staging
    are read and compared first.
    """
    storages = {root: Storage.for_uri(root) for handle in handles for root in _roots(handle) if root != own.uri}
    storages[own.uri] = own
    for handle in handles:
        storage = storages[handle.root]
        if handle.marks:
            _unmark(storage, handle)
        for file in handle.files:
            _publish(storage, file, handle.name, verify)
    consumed = {place for handle in handles for place in handle.consumed}
    for handle in handles:
        for path in handle.held:
            if (handle.root, path) not in consumed:
                _hold(storages[handle.root], path, handle.name)
    for root, path in sorted(consumed):
        storages[root].delete(path)
        storages[root].delete(path + HELD)
    _mark_success(storages, handles)


def _roots(handle: FileHandle) -> Iterable[str]:
    return {handle.root, *(root for root, _ in handle.consumed)}


def _publish(storage: Storage, file: StagedFile, name: TransactionName, verify: bool) -> None:
    """Move one file to its final name, or find that this was done before."""
    location = storage.location(file.final)
    published = size_of(storage, file.final)
    if published == file.size:
        # Whoever moved it may have died before the move was durable or, where a move is a copy, before its second half.
        make_durable(storage, file.final)
        storage.delete(file.staging)
        return
    if published is not None:
        raise TransactionError(
            f"{location} has {published} bytes, {file.size} were pre-committed as {name}. "
            "Something else wrote or cut this file; move it away and restart the job from its last checkpoint."
        )
    staged = size_of(storage, file.staging)
    if staged is None:
        raise TransactionError(
            f"{location} is lost: neither it nor {storage.location(file.staging)} exists, though {name} was "
            f"pre-committed with {file.size} bytes. "
            "If it was committed and then moved away, put it back; committed files must stay until a later checkpoint "
            "has completed."
        )
    if staged != file.size or verify:
        check_staged(storage, file)
    storage.move(file.staging, file.final)
    failpoint("file-sink-moved", attempt=name.attempt, epoch=name.epoch, subtask=name.subtask)


def check_staged(storage: Storage, file: StagedFile) -> None:
    """Read a file in staging; TransactionError unless it is what was written."""
    try:
        check_file(storage, file.staging, file.size, file.checksum)
    except CorruptFileError as cause:
        raise TransactionError(
            f"{storage.location(file.final)} cannot be committed: {cause}. Put back the file that was written, "
            "or restore a checkpoint from before it was written, whose rows then come again."
        ) from cause


def _hold(storage: Storage, path: str, name: TransactionName) -> None:
    if not storage.exists(path):
        raise TransactionError(
            f"{storage.location(path)} is lost, though {name} left it there for a later file. If a later checkpoint of "
            "the job published its rows, restore that one; else restore an earlier one."
        )
    storage.write_atomic(path + HELD, b"")
    failpoint("file-sink-held", attempt=name.attempt, epoch=name.epoch, subtask=name.subtask)


def _unmark(storage: Storage, handle: FileHandle) -> None:
    """A bucket that gets files is not finished, whatever was said before."""
    folders = {file.final.rpartition("/")[0] for file in handle.files}
    for folder in sorted(folders | {""} if folders else folders):
        storage.delete(f"{folder}/{SUCCESS}" if folder else SUCCESS)


def _mark_success(storages: dict[str, Storage], handles: Sequence[FileHandle]) -> None:
    """Mark buckets with which every subtask that spoke of them is done, and the whole where all subtasks ended.

    A subtask speaks at each checkpoint of all buckets that it is not done with, so that one commit has heard
    everybody.
    """
    latest: dict[tuple[str, str], dict[int, bool]] = {}
    last: dict[str, dict[int, Statement]] = {}
    for handle in handles:
        if handle.statement is not None:
            last.setdefault(handle.root, {})[handle.name.subtask] = handle.statement
            for bucket, finished in handle.statement.finished.items():
                latest.setdefault((handle.root, bucket), {})[handle.name.subtask] = finished
    for (root, bucket), finished_by in sorted(latest.items()):
        if all(finished_by.values()):
            storages[root].write_atomic(f"{bucket}/{SUCCESS}", b"")
    for root, statements in last.items():
        if all(s.ended and s.subtasks == len(statements) for s in statements.values()):
            storages[root].write_atomic(SUCCESS, b"")
