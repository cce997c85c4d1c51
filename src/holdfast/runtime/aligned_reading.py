"""How an aligned source is read: until the watermark behind it passes the bound of the epoch."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from holdfast.runtime.alignment import HeldBack, WatermarkAlignment
from holdfast.runtime.endpoints import SourceOperator
from holdfast.runtime.source import ReadLimit
from holdfast.runtime.watermarks import TimestampsAndWatermarksOperator


class AlignedReading:
    """One subtask of a source, and of the operator that gives its rows their event times."""

    def __init__(self, timed: TimestampsAndWatermarksOperator, alignment: WatermarkAlignment) -> None:
        self._timed = timed
        self._alignment = alignment

    @property
    def operator_id(self) -> str:
        """The operator whose watermark is looked at."""
        return self._timed.spec.operator_id

    def read(self, source: SourceOperator, limit: ReadLimit, bound: int) -> Iterator[int]:
        """As ``SourceOperator.read``; nothing where it is too far ahead already."""
        held_back = HeldBack(self._alignment, bound)
        self._timed.clock.resume()
        if held_back.stops_at(self._timed.watermark):
            self._timed.clock.pause()
            # It waits for others: there is nothing to begin another epoch for.
            source.has_more = False
            return
        limit.waits = partial(self._timed.holds_back, held_back=held_back)
        for rows in source.read(limit):
            if held_back.stops_at(self._timed.watermark):
                self._timed.clock.pause()
                limit.stop()
            yield rows
