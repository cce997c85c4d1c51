"""Which files checkpoints need. Pure: paths in, paths out."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from holdfast.state.handles import CheckpointMetadata, FileHandle, SubtaskSnapshot
from holdfast.storage.filesystem import final_name

_OWN = re.compile(r"chk-([0-9]+)/([0-9]+)-.+")
_SHARED = re.compile(r"shared/([0-9]+)-([0-9]+)-.+")


@dataclass(frozen=True)
class FileOrigin:
    """Who wrote a snapshot file."""

    attempt: int
    checkpoint_id: int


def snapshot_handles(snapshot: SubtaskSnapshot) -> Iterator[FileHandle]:
    if snapshot.keyed is not None:
        yield from snapshot.keyed.handles()
    if snapshot.raw_keyed is not None:
        yield snapshot.raw_keyed.handle
    yield from (handle for handle in (snapshot.operator_state, snapshot.raw_operator) if handle is not None)


def snapshot_files(snapshot: SubtaskSnapshot) -> frozenset[str]:
    return frozenset(handle.path for handle in snapshot_handles(snapshot) if handle.inline is None)


def metadata_handles(metadata: CheckpointMetadata) -> Iterator[FileHandle]:
    for operator in metadata.operators:
        for snapshot in operator.subtasks:
            yield from snapshot_handles(snapshot)


def referenced_files(metadata: CheckpointMetadata) -> frozenset[str]:
    return frozenset(handle.path for handle in metadata_handles(metadata) if handle.inline is None)


def origin_of(path: str) -> FileOrigin | None:
    """Parsed from the path of a snapshot file, finished or not; None for every other file."""
    path = _finished(path)
    if match := _OWN.fullmatch(path):
        return FileOrigin(attempt=int(match[2]), checkpoint_id=int(match[1]))
    if match := _SHARED.fullmatch(path):
        return FileOrigin(attempt=int(match[1]), checkpoint_id=int(match[2]))
    return None


def left_by_earlier_attempts(paths: Iterable[str], needed: Collection[str], running_attempt: int) -> set[str]:
    """Files that no checkpoint needs and that nobody can be writing when an attempt begins.

    ``needed`` are the files of the checkpoints that stay. Names that Holdfast does not give are left alone.
    """
    return {path for path in paths if path not in needed and _is_leftover(path, running_attempt)}


def _is_leftover(path: str, running_attempt: int) -> bool:
    origin = origin_of(path)
    if origin is not None:
        return origin.attempt < running_attempt
    # What is left is the driver's own; an unfinished write of it is that of a driver that died.
    return final_name(path.rpartition("/")[2]) is not None


def _finished(path: str) -> str:
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}{final_name(name) or name}"
