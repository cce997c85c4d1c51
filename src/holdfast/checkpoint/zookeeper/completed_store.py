"""Completed checkpoints whose record is in ZooKeeper, and whose bytes are in files."""

from __future__ import annotations

import logging

import msgspec
from kazoo.client import TransactionRequest
from kazoo.exceptions import NodeExistsError, NoNodeError

from holdfast.checkpoint.completed import CompletedCheckpoint, DamagedCheckpoint
from holdfast.checkpoint.completed_store import CompletedCheckpointStore, read_checkpoints
from holdfast.checkpoint.storage import FileCheckpointStorage
from holdfast.checkpoint.zookeeper.ids import last_id
from holdfast.checkpoint.zookeeper.leadership import ZooKeeperLeadership
from holdfast.errors import ConfigurationError, StorageError

_log = logging.getLogger(__name__)


class CheckpointPointer(msgspec.Struct, frozen=True):
    """The content of a checkpoint's node."""

    checkpoint_id: int
    location: str
    commit_begun: bool = False
    committed: bool = False


class ZooKeeperCompletedCheckpointStore(CompletedCheckpointStore):
    """A checkpoint is completed if, and only if, it has a node; ``_metadata`` in its folder is what the node points to.

    ``recover`` comes first. The first leader of all takes over what the directory has: a job that was kept in files
    goes on.
    """

    def __init__(self, leadership: ZooKeeperLeadership, storage: FileCheckpointStorage, num_retained: int = 1) -> None:
        super().__init__(storage, num_retained)
        self._leadership = leadership
        self._files = storage
        self._pointers: dict[int, CheckpointPointer] = {}

    def recover(self) -> list[DamagedCheckpoint]:
        drawn = last_id(self._leadership)
        # Behind this no other driver has drawn a number up to that one, nor can complete a checkpoint of it.
        self._leadership.check()
        self._pointers = self._read_pointers()
        self._check_locations()
        self._checkpoints, damaged = read_checkpoints(self._files, self._pointers)
        self._discard_uncompleted(drawn)
        return damaged

    def mark_commit_begun(self, checkpoint_id: int) -> None:
        self._write(msgspec.structs.replace(self._pointers[checkpoint_id], commit_begun=True))

    def mark_committed(self, checkpoint_id: int) -> None:
        self._write(msgspec.structs.replace(self._pointers[checkpoint_id], commit_begun=True, committed=True))

    def commits_begun(self) -> frozenset[int]:
        return frozenset(number for number, pointer in self._pointers.items() if pointer.commit_begun)

    def _insert(self, checkpoint: CompletedCheckpoint) -> None:
        number = checkpoint.checkpoint_id
        pointer = CheckpointPointer(number, checkpoint.location)
        content = msgspec.json.encode(pointer)
        self._leadership.change(lambda transaction: transaction.create(self._node(number), content), NodeExistsError)
        self._pointers[number] = pointer

    def _discard(self, checkpoint_id: int) -> None:
        """The node first: a node that points to nothing would be a damaged checkpoint."""
        self._leadership.change(lambda transaction: transaction.delete(self._node(checkpoint_id)), NoNodeError)
        self._pointers.pop(checkpoint_id, None)
        self._files.discard(checkpoint_id)

    def _write(self, pointer: CheckpointPointer) -> None:
        content = msgspec.json.encode(pointer)
        self._leadership.change(lambda transaction: transaction.set_data(self._node(pointer.checkpoint_id), content))
        self._pointers[pointer.checkpoint_id] = pointer

    def _read_pointers(self) -> dict[int, CheckpointPointer]:
        names = self._leadership.children(self._leadership.nodes.checkpoints)
        if names is None:
            return self._take_over_files()
        contents = (self._leadership.read(self._node(int(name))) for name in names)
        found = (msgspec.json.decode(content, type=CheckpointPointer) for content in contents if content is not None)
        return {pointer.checkpoint_id: pointer for pointer in found}

    def _take_over_files(self) -> dict[int, CheckpointPointer]:
        begun = self._files.commits_begun()
        pointers = {
            number: CheckpointPointer(number, self._files.location(number), commit_begun=number in begun)
            for number in {*self._files.completed_ids(), *begun}
        }

        def build(transaction: TransactionRequest) -> None:
            transaction.create(self._leadership.nodes.checkpoints, b"")
            for number, pointer in pointers.items():
                transaction.create(self._node(number), msgspec.json.encode(pointer))

        self._leadership.change(build, NodeExistsError)
        return pointers

    def _check_locations(self) -> None:
        for number, pointer in self._pointers.items():
            if pointer.location != self._files.location(number):
                raise ConfigurationError(
                    f"checkpoint {number} of this job is in {pointer.location}, and execution.checkpointing.dir is set "
                    f"so that it would be in {self._files.location(number)}. Set the directory back, or start another "
                    "job id from that checkpoint with execution.state-recovery.path."
                )

    def _discard_uncompleted(self, drawn: int) -> None:
        """Metadata that drivers wrote who could not complete their checkpoint: nobody may take it for one."""
        try:
            for number in self._files.completed_ids():
                if number <= drawn and number not in self._pointers:
                    _log.info("Checkpoint %d was never completed: its metadata is deleted", number)
                    self._files.discard(number)
        except StorageError as error:
            _log.warning("Metadata of checkpoints that were never completed stays behind: %s", error)

    def _node(self, checkpoint_id: int) -> str:
        return f"{self._leadership.nodes.checkpoints}/{checkpoint_id}"
