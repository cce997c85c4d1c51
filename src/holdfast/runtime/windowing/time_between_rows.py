"""Event time between rows that are in their windows already."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from holdfast.runtime.batch import Batch
from holdfast.runtime.event_times import Numbers, Times

if TYPE_CHECKING:
    from holdfast.runtime.windowing.operator import WindowOperator


class TimeBetweenRows:
    """Lets event time pass as if rows had come one by one. ``next_due`` says when the next window fires."""

    def __init__(self, operator: WindowOperator, next_due: Callable[[], int | None]) -> None:
        self._operator = operator
        self._next_due = next_due
        self._most_given = operator.plan.path.most_given

    def watermarks(self, batch: Batch) -> Numbers:
        """Event time as it is for each row."""
        watermarks = np.full(len(batch), self._operator.watermark, dtype=np.int64)
        if batch.marks is not None:
            np.maximum.accumulate(np.maximum(watermarks, numbers_of(batch.marks)), out=watermarks)
        return watermarks

    def come_to(self, watermarks: Sequence[int], row: int) -> None:
        """Event time as it is for a row; windows fire that ended before."""
        operator, limit = self._operator, watermarks[row]
        while limit > operator.watermark:
            due = self._next_due()
            if due is None or due > limit:
                operator.watermark = limit
                return
            first = max(bisect_left(watermarks, due), bisect_right(watermarks, operator.watermark))
            if first:
                operator.watermark = max(operator.watermark, watermarks[first - 1])
            operator.advance(watermarks[first])
            if operator.emitted > self._most_given:
                operator.flush()


def numbers_of(watermarks: Times) -> Numbers:
    """The watermarks of rows."""
    numbers = watermarks.numbers
    assert numbers is not None, "every row has one"
    return numbers
