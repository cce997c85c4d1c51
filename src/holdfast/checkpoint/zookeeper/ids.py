"""Numbers of checkpoints, counted in ZooKeeper."""

from __future__ import annotations

from holdfast.checkpoint.ids import CheckpointIdCounter
from holdfast.checkpoint.storage import CheckpointStorage
from holdfast.checkpoint.zookeeper.leadership import ZooKeeperLeadership


class ZooKeeperCheckpointIdCounter(CheckpointIdCounter):
    """A number is drawn when ZooKeeper has it on record: no two leaders ever write a checkpoint of the same number."""

    def __init__(self, leadership: ZooKeeperLeadership, storage: CheckpointStorage) -> None:
        self._leadership = leadership
        self._storage = storage
        self._last: int | None = None
        self._passed_over = 0

    def next(self) -> int:
        if self._last is None:
            self._last = max(last_id(self._leadership), *self._storage.seen_ids(), 0)
        number = max(self._last, self._passed_over) + 1
        node = self._leadership.nodes.last_id
        self._leadership.change(lambda transaction: transaction.set_data(node, str(number).encode()))
        self._last = number
        return number

    def pass_over(self, checkpoint_id: int) -> None:
        self._passed_over = max(self._passed_over, checkpoint_id)


def last_id(leadership: ZooKeeperLeadership) -> int:
    """The greatest number that any leader has drawn, or 0."""
    return int(leadership.read(leadership.nodes.last_id) or 0)
