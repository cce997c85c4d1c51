"""Windows that take the rows of a batch first, and let event time pass between them afterwards.

A row may go into a window as long as the watermark has not passed the window's end, and until then the window does not
fire. So all rows of a batch that are in time can go into their windows before the first of these fires: what happened
between the rows comes after that, in its order. The more rows a batch has, the more of them meet in their windows:
rows by event time wait for others of their epoch.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from holdfast.runtime.batch import Batch
from holdfast.runtime.event_times import Numbers, Times
from holdfast.runtime.operator import MAX_WATERMARK, MIN_WATERMARK
from holdfast.runtime.plan import OperatorSpec
from holdfast.runtime.row_buffer import WaitingRows
from holdfast.runtime.windowing.operator import WindowOperator

#: So many rows, or bytes of them, are not kept waiting for more of their epoch.
_MOST_ROWS = 1 << 17
_MOST_BYTES = 32 << 20
#: Rows that windows gave, before they are handed on.
_MOST_OUT = 1 << 16


class RowsFirstOperator(WindowOperator):
    """What windows of a fixed size and sessions share."""

    #: Whether it works on columns: rows that came in several forms are then taken one form after the other.
    by_column: ClassVar[bool] = False

    def __init__(self, spec: OperatorSpec) -> None:
        super().__init__(spec)
        self._waiting = WaitingRows(_MOST_ROWS, _MOST_BYTES)
        #: The watermark that came behind rows that wait: it counts from the next row on, or at their end.
        self._behind_waiting = MIN_WATERMARK

    # -- rows that wait

    def process(self, batch: Batch, input_index: int) -> None:
        if not self._event_time:
            self._process_together(batch)
            return
        behind = self._behind_waiting
        if batch.marks is not None and behind > MIN_WATERMARK:
            batch.marks = Times(np.maximum(_numbers(batch.marks), behind))
        if self._waiting.add(batch):
            self.end_rows()

    @abstractmethod
    def _process_together(self, batch: Batch, ahead: int = MIN_WATERMARK) -> None:
        """Event time comes to ``ahead`` right behind the rows, if not with them."""

    def _process_one_by_one(self, batch: Batch) -> None:
        """As other windows do."""
        super().process(batch, 0)

    def process_watermark(self, watermark: int) -> None:
        if self._waiting and watermark < MAX_WATERMARK:
            self._behind_waiting = max(self._behind_waiting, watermark)
        else:
            self.end_rows()
            super().process_watermark(watermark)

    def finish(self) -> None:
        self.end_rows()
        super().finish()

    def end_rows(self) -> None:
        batches = list(Batch.joined(self._waiting.take()))
        if len(batches) > 1 and not self.by_column:
            batches = [Batch.in_python(batches)]
        behind, self._behind_waiting = self._behind_waiting, MIN_WATERMARK
        for number, batch in enumerate(batches, start=1):
            self._process_together(batch, behind if number == len(batches) else MIN_WATERMARK)
        super().process_watermark(behind)

    # -- event time between rows

    def _watermarks(self, batch: Batch) -> Numbers:
        """Event time as it is for each row."""
        watermarks = np.full(len(batch), self.watermark, dtype=np.int64)
        if batch.marks is not None:
            np.maximum.accumulate(np.maximum(watermarks, _numbers(batch.marks)), out=watermarks)
        return watermarks

    def _come_to(self, watermarks: Sequence[int], row: int) -> None:
        """Event time as it is for a row; windows fire that ended before."""
        limit = watermarks[row]
        while limit > self.watermark:
            due = self._next_due()
            if due is None or due > limit:
                self.watermark = limit
                return
            first = max(bisect_left(watermarks, due), bisect_right(watermarks, self.watermark))
            if first:
                self.watermark = max(self.watermark, watermarks[first - 1])
            self._advance(watermarks[first])
            if len(self._out) > _MOST_OUT:
                self._flush()

    def _next_due(self) -> int | None:
        """When the next window fires."""
        return self._event_timers.next_timestamp()


def _numbers(watermarks: Times) -> Numbers:
    numbers = watermarks.numbers
    assert numbers is not None, "every row has one"
    return numbers
