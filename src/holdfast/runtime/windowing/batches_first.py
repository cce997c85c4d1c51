"""Windows that take the rows of a batch first, and let event time pass between them afterwards.

A row may go into a window as long as the watermark has not passed the window's end, and until then the window does not
fire. So all rows of a batch that are in time can go into their windows before the first of these fires: what happened
between the rows comes after that, in its order. The more rows a batch has, the more of them meet in their windows:
rows by event time wait for others of their epoch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from holdfast.runtime.batch import Batch
from holdfast.runtime.event_times import Times
from holdfast.runtime.operator import MAX_WATERMARK, MIN_WATERMARK
from holdfast.runtime.row_buffer import WaitingRows
from holdfast.runtime.windowing.row_taker import RowTaker
from holdfast.runtime.windowing.time_between_rows import numbers_of
from holdfast.state.timers import TimeDomain, TimerQueue

if TYPE_CHECKING:
    from holdfast.runtime.windowing.operator import WindowOperator


class BatchTaker(ABC):
    """Puts the rows of one batch into their windows together."""

    #: Whether it works on columns: rows that came in several forms are then taken one form after the other.
    by_column: bool = False

    def __init__(self, operator: WindowOperator) -> None:
        self.operator = operator

    @abstractmethod
    def take(self, batch: Batch, ahead: int = MIN_WATERMARK) -> None:
        """Event time comes to ``ahead`` right behind the rows, if not with them."""

    @abstractmethod
    def fire_due(self, timers: TimerQueue, to: int, domain: TimeDomain) -> None:
        """See RowTaker."""

    def before_timers(self) -> None:
        """See RowTaker."""


class BatchesFirst(RowTaker):
    """The rows of an epoch wait for each other, with the watermarks behind them."""

    def __init__(self, operator: WindowOperator, batches: BatchTaker) -> None:
        super().__init__(operator)
        path = operator.plan.path
        self._batches = batches
        self._waiting = WaitingRows(path.most_waiting_rows, path.most_waiting_bytes)
        #: The watermark that came behind rows that wait: it counts from the next row on, or at their end.
        self._behind_waiting = MIN_WATERMARK

    def take(self, batch: Batch) -> None:
        if not self.operator.event_time:
            self._batches.take(batch)
            return
        behind = self._behind_waiting
        if batch.marks is not None and behind > MIN_WATERMARK:
            batch.marks = Times(np.maximum(numbers_of(batch.marks), behind))
        if self._waiting.add(batch):
            self.end_rows()

    def holds(self, watermark: int) -> bool:
        if self._waiting and watermark < MAX_WATERMARK:
            self._behind_waiting = max(self._behind_waiting, watermark)
            return True
        self.end_rows()
        return False

    def end_rows(self) -> None:
        batches = list(Batch.joined(self._waiting.take()))
        if len(batches) > 1 and not self._batches.by_column:
            batches = [Batch.in_python(batches)]
        behind, self._behind_waiting = self._behind_waiting, MIN_WATERMARK
        for number, batch in enumerate(batches, start=1):
            self._batches.take(batch, behind if number == len(batches) else MIN_WATERMARK)
        self.operator.reach(behind)

    def before_timers(self) -> None:
        self._batches.before_timers()

    def fire_due(self, timers: TimerQueue, to: int, domain: TimeDomain) -> None:
        self._batches.fire_due(timers, to, domain)
