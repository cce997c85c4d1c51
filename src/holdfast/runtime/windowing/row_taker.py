"""The ways of rows into their windows: the contract, and the way that all windows have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from holdfast.runtime.batch import Batch
from holdfast.state.timers import TimeDomain, TimerQueue

if TYPE_CHECKING:
    from holdfast.runtime.windowing.operator import WindowOperator


class RowTaker(ABC):
    """Puts rows into the windows of an operator, and fires their timers.

    Of the operator it needs, beside its parts (assigner, contents, timers, merging windows): ``add`` for a row of the
    current key, ``late`` for one that is too late, ``advance`` to let event time go on between rows, ``reach`` behind
    them, and ``emit``, ``emit_all`` and ``flush`` for what windows give.
    """

    def __init__(self, operator: WindowOperator) -> None:
        self.operator = operator

    @abstractmethod
    def take(self, batch: Batch) -> None:
        """Rows come. They may wait for others until ``end_rows``."""

    def holds(self, watermark: int) -> bool:
        """A watermark comes behind the rows so far. Whether it waits with them."""
        return False

    def end_rows(self) -> None:
        """Nothing waits any longer."""

    def before_timers(self) -> None:
        """Event time or processing time goes on next, and timers may fire."""

    def fire_due(self, timers: TimerQueue, to: int, domain: TimeDomain) -> None:
        """Fire the timers of a domain that are due at a time."""
        self.operator.fire_timers(timers.advance(to), domain, self.operator.on_timer)


class OneByOne(RowTaker):
    """One row after the other, at its own event time."""

    def take(self, batch: Batch) -> None:
        operator = self.operator
        rows = len(batch)
        timestamps = batch.timestamps if batch.timestamps is not None else [None] * rows
        watermarks = batch.watermarks if batch.watermarks is not None else [operator.watermark] * rows
        if operator.event_time and None in timestamps:
            raise operator.no_time()
        context, add = operator.key_context, operator.add
        operator.look_at_clock()
        key = value = None
        try:
            for key, identity, value, timestamp, watermark in zip(
                *operator.keys_of(batch), batch.values, timestamps, watermarks, strict=True
            ):
                if watermark > operator.watermark:
                    operator.advance(watermark)
                context.key, context.identity = key, identity
                add(value, timestamp)
        except BaseException as error:
            raise operator.failure(error, value, key) from error
        operator.flush()
