"""Where a savepoint is kept: one folder that belongs to the user, complete once it has its ``_metadata``."""

from __future__ import annotations

import logging
import secrets
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from holdfast.checkpoint.metadata_format import decode_metadata, encode_metadata
from holdfast.checkpoint.savepoint_contents import describe_states
from holdfast.checkpoint.shared_files import metadata_handles, referenced_files
from holdfast.errors import CheckpointError, HoldfastError, StorageError
from holdfast.state.handles import CheckpointMetadata, CheckpointRequest, SavepointFormat
from holdfast.state.pickled_states import named_states
from holdfast.state.savepoint_files import IN_PROGRESS_FILE, NOTE_PREFIX, SavepointWriter, is_inside
from holdfast.state.snapshot_files import METADATA_FILE, FileSnapshotReader
from holdfast.storage.filesystem import Storage, final_name, is_missing

_log = logging.getLogger(__name__)
#: Of the metadata's properties: paths are relative to the snapshot's own folder.
RELOCATABLE = "relocatable"
FORMAT = "format"
#: The states of a canonical savepoint, for people and other programs.
STATES = "states"
#: What of it is pickled, and what declares its type: a line for each state, for people.
PICKLED = "pickled"


@dataclass(frozen=True)
class SavepointLocation:
    """The folder of one savepoint. Used on the driver; its writers and readers travel to tasks."""

    #: Anything that ``Storage.for_uri`` takes.
    path: str

    @classmethod
    def create(cls, target_directory: str, job_id: str) -> SavepointLocation:
        """A new folder ``savepoint-<job>-<random>`` in ``target_directory``; CheckpointError where that cannot be."""
        name = f"savepoint-{job_id[:6]}-{secrets.token_hex(6)}"
        try:
            storage = Storage.for_uri(target_directory).child(name)
            # Its first file: from now on the folder exists, and is seen to be unfinished.
            storage.write_atomic(IN_PROGRESS_FILE, f"A savepoint of job {job_id} is being written.\n".encode())
        except (HoldfastError, OSError, ValueError) as error:
            # Whatever somebody gave as a directory, the job goes on.
            raise CheckpointError(
                f"no savepoint can be written to {target_directory}: {error}. Give a directory that the driver and all "
                "executors can write to."
            ) from error
        return cls(storage.uri)

    def writer(self, request: CheckpointRequest) -> SavepointWriter:
        return SavepointWriter(self.path, request.checkpoint_id, request.attempt)

    def reader(self) -> FileSnapshotReader:
        return FileSnapshotReader(self.path)

    def write_metadata(self, metadata: CheckpointMetadata) -> str:
        """Make the savepoint complete, durably and at once, and give its path. After an error it is not complete."""
        for path in referenced_files(metadata):
            if not is_inside(path):
                raise CheckpointError(f"the savepoint {self.path} refers to {path!r}, which is not in its folder")
        properties = {FORMAT: _format_of(metadata), **metadata.properties, RELOCATABLE: True}
        if properties[FORMAT] == SavepointFormat.CANONICAL:
            properties[STATES] = describe_states(metadata)
        pickled = [state.advice() for state in named_states(metadata, self.reader())]
        if pickled:
            properties[PICKLED] = pickled
        storage = Storage.for_uri(self.path)
        complete = msgspec.structs.replace(metadata, properties=properties)
        if not storage.create_exclusive(METADATA_FILE, encode_metadata(complete, indent=1)):
            raise StorageError(f"{storage.location(METADATA_FILE)} exists already: the savepoint is complete")
        try:
            _sweep(storage, complete)
        except StorageError as error:
            _log.warning("The savepoint %s is complete; a file that it does not need stays: %s", self.path, error)
        for line in pickled:
            _log.warning("In the savepoint %s, %s", self.path, line)
        return self.path

    def discard(self) -> None:
        """Remove all of it, after a failure. Uploads that still go on find that out, and stop."""
        storage = Storage.for_uri(self.path)
        # First: who writes a note now looks for it afterwards, and takes the note away when it is gone.
        storage.delete(IN_PROGRESS_FILE)
        storage.delete_dir("")


def pickled_in_savepoint(path: str) -> list[str]:
    """What of a savepoint is pickled, in lines for people; nothing where it cannot be read any more."""
    with suppress(HoldfastError):
        _, metadata = _open(path)
        return list(metadata.properties.get(PICKLED, []))
    return []


def dispose_savepoint(path: str) -> None:
    """Delete a savepoint: its ``_metadata`` first, then the files that it accounts for, and folders that become empty.

    CheckpointError for everything that is not a savepoint, of which nothing is touched. Other files that somebody put
    into the folder stay.
    """
    storage, metadata = _open(path)
    files = sorted(referenced_files(metadata))
    outside = [file for file in files if not is_inside(file)]
    if outside:
        raise CheckpointError(f"{path} refers to {outside[0]!r}, which is not in its folder; nothing was deleted.")
    storage.delete(METADATA_FILE)
    for file in [*_passing_files(storage), *files]:
        storage.delete(file)
    folders = {file[:at] for file in files for at, letter in enumerate(file) if letter == "/"}
    for folder in [*sorted(folders, key=len, reverse=True), ""]:
        if not storage.list(folder, temporaries=True):
            storage.delete_dir(folder)


def _open(path: str) -> tuple[Storage, CheckpointMetadata]:
    folder = path.rstrip("/").removesuffix(f"/{METADATA_FILE}")
    storage = Storage.for_uri(folder)
    try:
        data = storage.read(METADATA_FILE)
    except StorageError as error:
        if not is_missing(error) and not isinstance(error.__cause__, NotADirectoryError):
            raise
        raise CheckpointError(
            f"{path} is not a savepoint: there is no {storage.location(METADATA_FILE)}. Nothing was deleted. Give the "
            "path of a folder such as <savepoint directory>/savepoint-4fc1d5-0123456789ab."
        ) from error
    metadata = decode_metadata(data, storage.location(METADATA_FILE))
    if not metadata.checkpoint_type.is_savepoint or not metadata.properties.get(RELOCATABLE):
        raise CheckpointError(
            f"{path} is checkpoint {metadata.checkpoint_id} of job {metadata.job_id} and not a savepoint. Nothing was "
            "deleted: checkpoints belong to their job, and later ones may need their files."
        )
    return storage, metadata


def _sweep(storage: Storage, metadata: CheckpointMetadata) -> None:
    """Delete what the savepoint does not need: notes, and files of executions that were not accepted, whose rows would
    be there twice for whoever reads all tables of a folder.
    """
    # First: it tells uploads that go on alone that they are not wanted.
    storage.delete(IN_PROGRESS_FILE)
    needed = {METADATA_FILE, *referenced_files(metadata)}
    for entry in storage.list(recursive=True, temporaries=True):
        if not entry.is_dir and entry.path not in needed:
            storage.delete(entry.path)


def _passing_files(storage: Storage) -> list[str]:
    """What is there only while a savepoint is written."""
    found = [entry.path for entry in storage.list(temporaries=True) if not entry.is_dir]
    return [path for path in found if path == IN_PROGRESS_FILE or path.startswith(NOTE_PREFIX) or final_name(path)]


def _format_of(metadata: CheckpointMetadata) -> Any:
    """Files that are no tables are those of a backend."""
    native = any(handle.inline is None and handle.table is None for handle in metadata_handles(metadata))
    return SavepointFormat.NATIVE if native else SavepointFormat.CANONICAL
