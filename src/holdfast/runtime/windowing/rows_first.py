"""Windows that take the rows of a batch first, and let event time pass between them afterwards.

A row may go into a window as long as the watermark has not passed the window's end, and until then the window does not
fire. So all rows of a batch that are in time can go into their windows before the first of these fires: what happened
between the rows comes after that, in its order.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import numpy as np

from holdfast.runtime.batch import Batch
from holdfast.runtime.windowing.folding import Numbers
from holdfast.runtime.windowing.operator import WindowOperator


class RowsFirstOperator(WindowOperator):
    """What windows by column and sessions share."""

    def _watermarks(self, batch: Batch) -> Numbers:
        """Event time as it is for each row."""
        watermarks = np.full(len(batch), self.watermark, dtype=np.int64)
        if batch.watermarks is not None:
            np.maximum.accumulate(np.maximum(watermarks, batch.watermarks), out=watermarks)
        return watermarks

    def _come_to(self, watermarks: Sequence[int], row: int) -> None:
        """Event time as it is for a row; windows fire that ended before."""
        limit = watermarks[row]
        while limit > self.watermark:
            due = self._event_timers.next_timestamp()
            if due is None or due > limit:
                self.watermark = limit
                return
            first = max(bisect_left(watermarks, due), bisect_right(watermarks, self.watermark))
            if first:
                self.watermark = max(self.watermark, watermarks[first - 1])
            self._advance(watermarks[first])
