"""Keyed state that need not be restored, because an earlier attempt left it on this host.

A local store can step back to the epoch of the newest completed checkpoint (see state/store.py). Where a store of the
same subtask can step back to exactly the execution that took the restored snapshot, it holds what the snapshot holds.
A copy is taken: a process of the earlier attempt may still be at work on the original, and is left behind with it. What
is copied is verified on the way, and one that is damaged is left to itself.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from holdfast.errors import StateError, StoreDamagedError
from holdfast.runtime.local_files import older_attempts
from holdfast.runtime.plan import JobPlan, OperatorSpec
from holdfast.state.handles import OperatorRecord
from holdfast.state.store import LocalStore, Stamp


def local_stamp(plan: JobPlan, spec: OperatorSpec, subtask: int, record: OperatorRecord, epoch: int) -> Stamp | None:
    """The stamp at which a store holds what the subtask restores; None where it restores something else than one
    subtask wrote.
    """
    same = (record.parallelism, record.max_parallelism) == (spec.parallelism, spec.max_parallelism)
    own = next((one for one in record.subtasks if one.subtask == subtask), None)
    if not plan.options.local_recovery or not same or own is None or own.keyed is None or not own.nonce:
        return None
    return Stamp(epoch, own.nonce) if own.keyed.backend == plan.backend.name else None


def continue_store(
    plan: JobPlan, attempt: int, directory: Path, stamp: Stamp, warn: Callable[[str], None]
) -> LocalStore | None:
    """A store in ``directory`` in the transaction behind ``stamp``, if this host has one to begin with that is what was
    written. ``warn`` is told of one that is not.
    """
    if directory.exists():
        # An execution before this one has been here, and was not accepted.
        return _at(plan, directory, stamp)
    # Under another name until it is whole: a process may be killed while it copies.
    copy = directory.with_name(f"{directory.name}.copy")
    for older in older_attempts(plan, attempt):
        shutil.rmtree(copy, ignore_errors=True)
        if _copied(plan, older / directory.name, copy, stamp, warn):
            copy.rename(directory)
            store = _at(plan, directory, stamp)
            if store is not None:
                return store
            shutil.rmtree(directory, ignore_errors=True)
    return None


def _copied(plan: JobPlan, source: Path, target: Path, stamp: Stamp, warn: Callable[[str], None]) -> bool:
    try:
        return plan.backend.copy(source, target, stamp)
    except StoreDamagedError as damaged:
        warn(f"{damaged} It is not used: the state comes from the checkpoint, or from what an older attempt left.")
        return False


def _at(plan: JobPlan, directory: Path, stamp: Stamp) -> LocalStore | None:
    store = plan.backend.open(directory)
    try:
        if store.stamp() is not None:
            store.begin(stamp)
            return store
    except StateError:
        pass  # it is at another version, or damaged: the checkpoint has it
    store.close()
    return None
