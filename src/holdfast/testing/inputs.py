"""The inputs of an operator under test: rows become envelopes, as the task before would make them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from holdfast.runtime.batch import Batch
from holdfast.runtime.combining_router import router_of
from holdfast.runtime.envelope import ChannelStatus
from holdfast.runtime.operator import MIN_WATERMARK
from holdfast.runtime.partitioners import Forward, KeyGroupHash
from holdfast.runtime.plan import EdgeSpec, TaskOptions
from holdfast.runtime.router import Outbox


class Input:
    """One input of one subtask, with the event time that it has come to."""

    def __init__(self, edge: EdgeSpec, subtask: int, where: str, options: TaskOptions) -> None:
        self.edge = edge
        self.watermark = MIN_WATERMARK
        if not isinstance(edge.partitioner, KeyGroupHash):
            # Whatever deals rows out in the job, those that are pushed are the ones that came to this subtask.
            edge = replace(edge, partitioner=Forward())
        self._router = router_of(edge, subtask, 0, where, options)

    def begin_epoch(self, inbox: Outbox) -> None:
        self._router.begin_epoch(inbox)
        self._before = self.watermark, self._router.dump()

    def roll_back(self) -> None:
        """Go back to the beginning of the epoch, as a source does."""
        self.watermark, statuses = self._before
        self._router.load(statuses)

    def send(self, rows: list[Any], timestamps: Sequence[int | None] | None) -> None:
        batch = Batch(rows)
        if self.edge.event_time:
            batch.timestamps = timestamps if timestamps is not None else [None] * len(rows)
            batch.watermarks = [self.watermark] * len(rows)
        self._router.collect(batch)
        self._router.flush()

    def send_status(self, status: ChannelStatus) -> None:
        self.watermark = status.watermark
        self._router.close_epoch(status)
