"""Where a job is kept between its drivers: in the memory of one, in its checkpoint directory, or there and in
ZooKeeper.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from holdfast.checkpoint.completed_store import FileCompletedCheckpointStore, MemoryCompletedCheckpointStore
from holdfast.checkpoint.job_directory import JobDirectory
from holdfast.checkpoint.leadership import DirectoryLeadership, Leadership, SoleLeadership
from holdfast.checkpoint.services import JobServices
from holdfast.checkpoint.storage import CheckpointStorage, FileCheckpointStorage, MemoryCheckpointStorage
from holdfast.errors import ConfigurationError, MissingExtraError
from holdfast.types.settings import CheckpointSettings, ZooKeeperSettings


class JobHome(ABC):
    """The place of a job, chosen once for a driver. ``services`` are asked for anew whenever it begins to lead the job.
    """

    storage: CheckpointStorage
    leadership: Leadership
    #: None when nothing is kept in files.
    directory: JobDirectory | None = None

    @staticmethod
    def of(job_id: str, checkpoint: CheckpointSettings, zookeeper: ZooKeeperSettings | None) -> JobHome:
        if checkpoint.directory is not None:
            storage = FileCheckpointStorage(checkpoint.directory, job_id, checkpoint.inline_threshold)
            directory = JobDirectory(checkpoint.directory, job_id, checkpoint.lease)
            if zookeeper is None:
                return DirectoryHome(storage, directory, checkpoint.num_retained)
            return ZooKeeperHome(storage, directory, checkpoint.num_retained, zookeeper)
        if zookeeper is not None:
            raise ConfigurationError(
                "high-availability.type is zookeeper and checkpoints are kept in the driver's memory, where no other "
                "driver finds them; set execution.checkpointing.dir (or high-availability.storageDir) to a directory "
                "that all drivers can reach"
            )
        return MemoryHome(checkpoint.num_retained)

    @abstractmethod
    def services(self) -> JobServices: ...


class MemoryHome(JobHome):
    def __init__(self, num_retained: int) -> None:
        self.storage = MemoryCheckpointStorage()
        self.leadership = SoleLeadership()
        self._num_retained = num_retained

    def services(self) -> JobServices:
        store = MemoryCompletedCheckpointStore(self.storage, self._num_retained)
        return JobServices.local(self.storage, store, self.leadership)


class DirectoryHome(JobHome):
    def __init__(self, storage: FileCheckpointStorage, directory: JobDirectory, num_retained: int) -> None:
        self.storage: FileCheckpointStorage = storage
        self.directory = directory
        self.leadership = DirectoryLeadership(directory)
        self._num_retained = num_retained

    def services(self) -> JobServices:
        store = FileCompletedCheckpointStore(self.storage, self._num_retained, self.leadership.check)
        return JobServices.local(self.storage, store, self.leadership)


class ZooKeeperHome(JobHome):
    """Bytes are in the directory; ZooKeeper says which of them count, and who may change that."""

    def __init__(
        self,
        storage: FileCheckpointStorage,
        directory: JobDirectory,
        num_retained: int,
        zookeeper: ZooKeeperSettings,
    ) -> None:
        try:
            from holdfast.checkpoint.zookeeper.end_record import ZooKeeperEndRecord
            from holdfast.checkpoint.zookeeper.leadership import ZooKeeperLeadership
        except ImportError as error:
            if error.name is None or not error.name.startswith("kazoo"):
                raise
            raise MissingExtraError("kazoo", "zookeeper", "high-availability.type: zookeeper") from error
        self.storage: FileCheckpointStorage = storage
        self.directory = directory
        self.leadership: ZooKeeperLeadership = ZooKeeperLeadership(zookeeper, directory)
        directory.end_record = ZooKeeperEndRecord(self.leadership, directory.end_record)
        self._num_retained = num_retained

    def services(self) -> JobServices:
        from holdfast.checkpoint.zookeeper.completed_store import ZooKeeperCompletedCheckpointStore
        from holdfast.checkpoint.zookeeper.ids import ZooKeeperCheckpointIdCounter

        store = ZooKeeperCompletedCheckpointStore(self.leadership, self.storage, self._num_retained)
        return JobServices(self.leadership, store, ZooKeeperCheckpointIdCounter(self.leadership, self.storage))
