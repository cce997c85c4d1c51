"""Deletes snapshot files that nothing needs any more."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable

from holdfast.checkpoint.pending import PendingCheckpoint
from holdfast.checkpoint.savepoint import SavepointLocation
from holdfast.checkpoint.shared_files import FileOrigin, left_by_earlier_attempts
from holdfast.checkpoint.storage import CheckpointStorage
from holdfast.errors import StorageError
from holdfast.state.handles import CheckpointRequest
from holdfast.storage.patience import Patience

_log = logging.getLogger(__name__)
_REMEMBERED_SAVEPOINTS = 16


class CheckpointsCleaner:
    """Takes files that were let go of and deletes each once nothing needs it; what fails is tried again.

    ``needed`` gives the files of all checkpoints that stay or may still complete.
    """

    def __init__(self, storage: CheckpointStorage, needed: Callable[[], Collection[str]]) -> None:
        self._storage = storage
        self._needed = needed
        self._patience = Patience()
        self._released: set[str] = set()
        self._given_up: OrderedDict[int, SavepointLocation] = OrderedDict()

    def release(self, *files: Iterable[str]) -> None:
        """Let go of files, and delete those that nothing needs. Call it only after the change of the store is
        durable.
        """
        self._released.update(*files)
        deletable = self._released.difference(self._needed())
        if not deletable:
            return
        try:
            left = self._patience.ask("delete files", lambda: self._storage.delete_paths(sorted(deletable)))
        except StorageError as error:
            _log.warning("Files that nothing needs could not be deleted for now: %s", error)
        else:
            self._released = (self._released - deletable) | left

    def withdraw(self, pending: PendingCheckpoint, confirm: Callable[[], None]) -> bool:
        """See to it that no recovery finds a checkpoint whose completion failed; False when that cannot be had now.

        It may be visible although its writer was told of a failure. ``confirm`` raises LeadershipLostError when another
        driver has the job: that one may go on from it, and nothing of it is touched. In doubt it is not touched either.
        The next attempt finds out whether it counts, and sweeps away what does not.
        """
        try:
            confirm()
            if pending.savepoint is None:
                self._storage.discard(pending.checkpoint_id)
        except StorageError as error:
            _log.warning(
                "Checkpoint %d could neither be completed nor withdrawn, so its files stay: %s",
                pending.checkpoint_id,
                error,
            )
            return False
        return True

    def give_up(self, pending: PendingCheckpoint) -> None:
        """A snapshot was aborted: what was acknowledged of it, and what was written and not yet acknowledged."""
        if pending.savepoint is None:
            self._released.update(pending.written_files())
        else:
            self._given_up[pending.checkpoint_id] = pending.savepoint
            while len(self._given_up) > _REMEMBERED_SAVEPOINTS:
                self._given_up.popitem(last=False)
        self.delete_files_of(pending.request)

    def delete_files_of(self, request: CheckpointRequest) -> None:
        """What was written for an aborted snapshot, up to now."""
        savepoint = self._given_up.get(request.checkpoint_id)
        try:
            if savepoint is not None:
                self._patience.ask("delete a savepoint", savepoint.discard)
            else:
                origin = FileOrigin(request.attempt, request.checkpoint_id)
                self.release(self._patience.ask("list files", lambda: self._storage.paths_of(origin)))
        except StorageError as error:
            _log.warning("Files of the aborted snapshot %d could not be deleted: %s", request.checkpoint_id, error)

    def sweep(self, running_attempt: int) -> None:
        """Delete what attempts before the running one left behind."""
        try:
            paths = self._storage.snapshot_paths()
            self._storage.delete_paths(sorted(left_by_earlier_attempts(paths, self._needed(), running_attempt)))
        except StorageError as error:
            _log.warning("Files of earlier attempts could not be deleted: %s", error)
