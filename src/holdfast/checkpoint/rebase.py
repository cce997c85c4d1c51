"""When a chain of deltas is given up for a new full image, and how deltas become a chain. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from holdfast.checkpoint.job_facts import JobOperator
from holdfast.errors import CheckpointError
from holdfast.state.handles import (
    CheckpointMetadata,
    KeyedSnapshot,
    OperatorRecord,
    SubtaskSnapshot,
)

#: Each file of a chain costs a round trip at a restore and a line in every later ``_metadata``.
MAX_CHAIN_FILES = 64


def full_image_due(base: KeyedSnapshot | None, max_files: int = MAX_CHAIN_FILES) -> bool:
    """Whether the next snapshot on top of this one should be a full image.

    It should when there is no base image, when the deltas and one more like the last would be larger than the base, and
    when the chain has ``max_files``, the image counting as one. A large image, or delta, is several files of one
    checkpoint, and what an image's own checkpoint stored on top of it is of the image. The files of a database replace
    each other: without deltas on top they are never given up.
    """
    if base is None or not base.stands_alone:
        return True
    native = base.native
    image = base.files[0].checkpoint_id if native is None else max(file.checkpoint_id for file in native.files)
    deltas = [file for file in base.files if file.checkpoint_id != image]
    if not deltas:
        return False
    next_delta = sum(file.handle.size for file in deltas if file.checkpoint_id == deltas[-1].checkpoint_id)
    size = sum(file.handle.size for file in deltas)
    image_size = sum(handle.size for handle in base.handles()) - size
    return size + next_delta > image_size or 1 + len(deltas) >= max_files


def full_images_due(
    base: CheckpointMetadata,
    operators: Iterable[JobOperator],
    backend: str | None = None,
    max_files: int = MAX_CHAIN_FILES,
) -> frozenset[tuple[str, int]]:
    """The (operator, subtask)s that must not build on ``base``: all of an operator whose key groups have moved, or
    whose state another backend wrote. ``backend`` None: any may have.
    """
    records = {record.operator_id: record for record in base.operators}
    due: set[tuple[str, int]] = set()
    for operator in operators:
        chains = _chains(records.get(operator.operator_id), operator, backend)
        due.update(
            (operator.operator_id, subtask)
            for subtask in range(operator.parallelism)
            if full_image_due(chains.get(subtask), max_files)
        )
    return frozenset(due)


def _chains(record: OperatorRecord | None, operator: JobOperator, backend: str | None) -> Mapping[int, KeyedSnapshot]:
    if record is None:
        return {}
    if (record.parallelism, record.max_parallelism) != (operator.parallelism, operator.max_parallelism):
        return {}
    return {
        snapshot.subtask: snapshot.keyed
        for snapshot in record.subtasks
        if snapshot.keyed is not None and backend in (None, snapshot.keyed.backend)
    }


def compose(written: SubtaskSnapshot, base: SubtaskSnapshot | None, full_wanted: bool) -> SubtaskSnapshot:
    """What a subtask wrote, on top of what its base had.

    A full image starts a new chain. When a delta was asked for, no file at all means that nothing changed: a subtask
    that answers with a full image of its own accord writes a file even when its state is empty.
    """
    if written.keyed is None:
        return written
    if full_wanted or written.keyed.stands_alone:
        _refuse_lone_delta(written, written.keyed)
        _refuse_lost_files(written, written.keyed, None if full_wanted or base is None else base.keyed)
        return written
    if base is None or base.keyed is None:
        raise CheckpointError(f"{_name(written)} wrote a delta and its base checkpoint has no keyed state of it")
    if _range(base.keyed) != _range(written.keyed):
        raise CheckpointError(
            f"{_name(written)} wrote a delta of key groups {_range(written.keyed)} on a base of {_range(base.keyed)}; "
            "a full image is needed when key groups move"
        )
    if base.keyed.backend != written.keyed.backend:
        raise CheckpointError(
            f"{_name(written)} wrote a delta of backend {written.keyed.backend} on a base of {base.keyed.backend}; "
            "a full image is needed when the backend changes"
        )
    files = base.keyed.files + written.keyed.files
    chain = msgspec.structs.replace(written.keyed, native=base.keyed.native, files=files)
    return msgspec.structs.replace(written, keyed=chain)


def _refuse_lone_delta(written: SubtaskSnapshot, keyed: KeyedSnapshot) -> None:
    if keyed.files and not keyed.stands_alone:
        raise CheckpointError(f"{_name(written)} wrote a delta where a full image was asked for")


def _refuse_lost_files(written: SubtaskSnapshot, keyed: KeyedSnapshot, base: KeyedSnapshot | None) -> None:
    """Files of a database that an earlier checkpoint stored must be those of the base: others may be deleted."""
    if keyed.native is None:
        return
    held = set() if base is None or base.native is None else set(base.native.files)
    newest = max((file.checkpoint_id for file in keyed.native.files), default=0)
    lost = [file for file in keyed.native.files if file.checkpoint_id < newest and file not in held]
    if lost:
        raise CheckpointError(
            f"{_name(written)} counts on the file {lost[0].name} of checkpoint {lost[0].checkpoint_id}, which its base "
            "checkpoint does not hold; a full image is needed"
        )


def _name(snapshot: SubtaskSnapshot) -> str:
    return f"subtask {snapshot.subtask} of operator {snapshot.operator_id}"


def _range(keyed: KeyedSnapshot) -> tuple[int, int]:
    return keyed.first_key_group, keyed.last_key_group
