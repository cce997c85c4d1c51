"""The record that a job has ended, behind the fence of its leader."""

from __future__ import annotations

from kazoo.exceptions import NoNodeError

from holdfast.checkpoint.end_record import EndRecord
from holdfast.checkpoint.zookeeper.leadership import ZooKeeperLeadership


class ZooKeeperEndRecord(EndRecord):
    """A node. A job that ended while it was kept in files alone has ended too."""

    def __init__(self, leadership: ZooKeeperLeadership, files: EndRecord) -> None:
        self._leadership = leadership
        self._node = leadership.nodes.ended
        self._files = files

    @property
    def location(self) -> str:
        return f"the node {self._node} of ZooKeeper"

    def read(self) -> bytes | None:
        content = self._leadership.read(self._node)
        return content if content is not None else self._files.read()

    def write(self, content: bytes) -> None:
        self._leadership.put(self._node, content)

    def delete(self) -> None:
        self._leadership.change(lambda transaction: transaction.delete(self._node), NoNodeError)
        if self._files.read() is not None:
            self._files.delete()
