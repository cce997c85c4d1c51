"""Files in staging: what a sink has written that nobody is to see yet, whatever the sink.

``<path>/_holdfast_staging/<job>/<operator>/<attempt>-<epoch>-<subtask>-<nonce>[.<n>]<suffix>``, with the number from a
transaction's second file on. A file that stays for a later transaction has an empty one beside it, of its name and
``.held``, from the moment that a completed checkpoint holds it: it is then no open transaction any more. Should the
empty one be lost: the handles of each checkpoint name everything that waits.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote, unquote

from holdfast.errors import TransactionError
from holdfast.runtime.sink import TransactionName
from holdfast.storage.filesystem import FileEntry, Storage, final_name

#: Begins with an underscore, so that readers of a sink's path leave it out.
STAGING = "_holdfast_staging"
HELD = ".held"


def job_folder(job_id: str) -> str:
    return f"{STAGING}/{quote(job_id, safe='')}"


def job_of(path: str) -> str:
    """The job that a file in staging belongs to."""
    return unquote(path.split("/")[1])


def staging_folder(name: TransactionName) -> str:
    return f"{job_folder(name.job_id)}/{quote(name.operator_id, safe='')}"


def staging_path(name: TransactionName, number: int, suffix: str) -> str:
    part = f".{number}" if number else ""
    return f"{staging_folder(name)}/{stem_of(name)}{part}{suffix}"


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


def stem_of(name: TransactionName) -> str:
    """What the names of a transaction's files begin with."""
    if not name.nonce or "." in name.nonce or "/" in name.nonce:
        raise TransactionError(f"The nonce {name.nonce!r} of a transaction must be a part of a file name without '.'.")
    return f"{name.attempt}-{name.epoch}-{name.subtask}-{name.nonce}"


def staged_names(storage: Storage, job_id: str) -> list[TransactionName]:
    """Transactions of a job that have files here, also those that were not written to their end. Files that a completed
    checkpoint holds are left out.
    """
    entries = storage.list(job_folder(job_id), recursive=True, temporaries=True)
    names = {staged_transaction(job_id, entry.path) for entry in _not_held(entries)}
    return sorted(name for name in names if name is not None)


def delete_staged(storage: Storage, name: TransactionName) -> None:
    """Remove the files of a transaction, but for those that a completed checkpoint holds."""
    for entry in _not_held(storage.list(staging_folder(name), temporaries=True)):
        if staged_transaction(name.job_id, entry.path) == name:
            storage.delete(entry.path)


def _not_held(entries: Iterable[FileEntry]) -> list[FileEntry]:
    files = [entry for entry in entries if not entry.is_dir]
    held = {entry.path for entry in files if entry.path.endswith(HELD)}
    return [entry for entry in files if entry.path not in held and entry.path + HELD not in held]
