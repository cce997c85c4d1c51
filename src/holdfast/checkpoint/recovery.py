"""Which checkpoint a new attempt starts from."""

from __future__ import annotations

import logging

from holdfast.checkpoint.completed import CompletedCheckpoint, DamagedCheckpoint
from holdfast.checkpoint.completed_store import CompletedCheckpointStore
from holdfast.checkpoint.storage import CheckpointStorage, is_damage
from holdfast.errors import CheckpointError, CorruptFileError, StorageError
from holdfast.state.snapshot_files import METADATA_FILE

_log = logging.getLogger(__name__)

ACCEPT_REPEATS_OPTION = "holdfast.recovery.accept-repeated-output"
#: Metadata property: the newest checkpoint whose commit had begun when the one that says so completed.
COMMITS_BEGUN_THROUGH = "commits_begun_through"


def select_for_restore(
    storage: CheckpointStorage, store: CompletedCheckpointStore, accept_repeated_output: bool = False
) -> CompletedCheckpoint | None:
    """The newest checkpoint all of whose bytes are what was written; None when the job has never completed one.

    Newer ones that are damaged, and those that do not count, are reported and removed, so that no later recovery
    returns to them. Two things are errors, and change nothing: to go back beyond a checkpoint whose rows may have been
    published, since that publishes them again (unless this is accepted), and to find none that is readable, since that
    loses the state.
    """
    candidates = _candidates(store)
    begun = store.commits_begun()
    begun_through = max((commits_begun_through(kept) for kept in store.all()), default=0)
    skipped: list[DamagedCheckpoint] = []
    chosen: CompletedCheckpoint | None = None
    for candidate in candidates:
        inspected = _inspect(storage, candidate)
        if isinstance(inspected, CompletedCheckpoint):
            chosen = inspected
            break
        had_begun = inspected.checkpoint_id in begun or inspected.checkpoint_id <= begun_through
        if had_begun and not accept_repeated_output:
            raise _would_repeat(inspected)
        skipped.append(inspected)
    if chosen is None and skipped:
        raise _nothing_left(skipped)
    lost = {number for number in begun if number > (chosen.checkpoint_id if chosen else 0)}
    lost -= {candidate.checkpoint_id for candidate in candidates}
    if lost and not accept_repeated_output:
        raise _lost(max(lost), f"{storage.location(max(lost))}/{METADATA_FILE}")
    unreadable = [candidate for candidate in candidates if isinstance(candidate, DamagedCheckpoint)]
    for damaged in {entry.checkpoint_id: entry for entry in [*skipped, *unreadable]}.values():
        _log.error("Checkpoint %d is damaged and left behind: %s", damaged.checkpoint_id, damaged.error)
        store.remove(damaged.checkpoint_id)
    for number in lost:
        store.remove(number)
    for late in store.overtaken:
        _log.warning(
            "Checkpoint %d of attempt %d does not count and is removed: a later attempt had begun from an older one "
            "when it was completed",
            late.checkpoint_id,
            late.metadata.attempt,
        )
        store.remove(late.checkpoint_id)
    return chosen


def commits_begun_through(checkpoint: CompletedCheckpoint) -> int:
    return int(checkpoint.metadata.properties.get(COMMITS_BEGUN_THROUGH, 0))


def _candidates(store: CompletedCheckpointStore) -> list[CompletedCheckpoint | DamagedCheckpoint]:
    damaged = store.recover()
    return sorted([*store.all(), *damaged], key=lambda candidate: candidate.checkpoint_id, reverse=True)


def _inspect(
    storage: CheckpointStorage, candidate: CompletedCheckpoint | DamagedCheckpoint
) -> CompletedCheckpoint | DamagedCheckpoint:
    if isinstance(candidate, DamagedCheckpoint):
        return candidate
    try:
        storage.verify(candidate.metadata)
    except StorageError as error:
        if not is_damage(error):
            raise
        return DamagedCheckpoint(candidate.checkpoint_id, candidate.location, error)
    return candidate


def _would_repeat(damaged: DamagedCheckpoint) -> CorruptFileError:
    path = damaged.error.path if isinstance(damaged.error, CorruptFileError) else damaged.location
    error = CorruptFileError(
        path,
        f"checkpoint {damaged.checkpoint_id} is damaged ({damaged.error}) and rows of it may have been published: an "
        "earlier checkpoint would publish them again. Bring the file back from a copy, or accept repeated rows with "
        f"{ACCEPT_REPEATS_OPTION}: true",
    )
    error.__cause__ = damaged.error
    return error


def _nothing_left(skipped: list[DamagedCheckpoint]) -> CheckpointError:
    found = "; ".join(f"checkpoint {damaged.checkpoint_id}: {damaged.error}" for damaged in skipped)
    error = CheckpointError(
        f"none of the {len(skipped)} completed checkpoints can be read: {found}. Bring the files back from a copy; to "
        "give the state up and begin anew, start the job under another job id or checkpoint directory."
    )
    error.__cause__ = skipped[0].error
    return error


def _lost(checkpoint_id: int, path: str) -> CheckpointError:
    return CheckpointError(
        f"rows of checkpoint {checkpoint_id} may have been published, and its metadata, {path}, is missing: an earlier "
        "checkpoint would publish them again. Bring the file back from a copy, or accept repeated rows with "
        f"{ACCEPT_REPEATS_OPTION}: true"
    )
