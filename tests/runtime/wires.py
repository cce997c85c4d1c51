"""A sender and a receiver of one edge, without a task around them."""

from __future__ import annotations

from typing import Any

from holdfast.runtime.batch import Batch
from holdfast.runtime.envelope import Barrier, ChannelStatus, Envelope, Header, unpack_header
from holdfast.runtime.partitioners import Partitioner
from holdfast.runtime.plan import EdgeSpec, TaskOptions
from holdfast.runtime.router import EdgeReader, Outbox, Router
from holdfast.types.typeinfo import TypeInformation

WHERE = "operator 'Source', subtask 1/2"
BARRIER = Barrier(1, 4, 9, "CHECKPOINT", "nonce", 0)
STATUS = ChannelStatus(100, False, False)


def edge_of(partitioner: Partitioner, type_info: TypeInformation, targets: int, event_time: bool = False) -> EdgeSpec:
    return EdgeSpec(3, "source", "target", partitioner, type_info, 2, targets, 1, event_time=event_time)


class Wire:
    """Rows in, envelopes out, and rows again."""

    def __init__(self, edge: EdgeSpec, options: TaskOptions | None = None) -> None:
        self.edge = edge
        self.router = Router(edge, subtask=1, channel=1, where=WHERE, options=options or TaskOptions())
        self._readers = [EdgeReader(edge) for _ in range(edge.target_parallelism)]

    def epoch(self, *batches: Batch, status: ChannelStatus = STATUS) -> list[Envelope]:
        """What one epoch sends, in the order in which it leaves the task."""
        outbox = Outbox(sender=1)
        self.router.begin_epoch(outbox)
        sent: list[Envelope] = []
        for batch in batches:
            self.router.collect(batch)
            sent += outbox.take()
        self.router.close_epoch(status)
        return sent + outbox.close(BARRIER)

    def read(self, target: int, envelopes: list[Envelope]) -> list[Batch]:
        """The batches of one target, in the order in which a level consumes them."""
        mine = sorted(
            (e for e in envelopes if e.slot == target and e.edge == self.edge.edge_id), key=lambda e: e.number
        )
        opened = [unpack_header(e.payload) for e in mine]
        return [self._readers[target].read(header, body) for header, body in opened if header.rows]


def headers(envelopes: list[Envelope], slot: int) -> list[Header]:
    """The headers of one link in the order in which they were sent."""
    return [unpack_header(e.payload)[0] for e in sorted(envelopes, key=lambda e: e.sequence) if e.slot == slot]


def all_rows(batches: list[Batch]) -> list[Any]:
    return [row for batch in batches for row in batch.values]
