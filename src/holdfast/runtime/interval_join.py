"""Pairs of rows of two keyed streams with event times within an interval: rows of the first stream come to input 0,
those of the second to input 1.

A row is kept until the watermark says that nothing it could be paired with will come any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.errors import ProgramError
from holdfast.runtime.batch import Batch
from holdfast.runtime.functions import method_of
from holdfast.runtime.keyed import TimedOperator
from holdfast.runtime.output_tag import OutputTag
from holdfast.runtime.plan import OperatorSpec
from holdfast.state.descriptors import MapStateDescriptor
from holdfast.state.timers import TimeDomain, TimerQueue
from holdfast.types.typeinfo import TypeInformation, Types

_LEFT, _RIGHT = 0, 1
#: Times are LONG.
_FIRST, _LAST = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True)
class IntervalJoinSpec:
    """A right row joins a left one when its time is from ``lower`` to ``upper`` ms after that one's, both inclusive."""

    function: Any
    lower: int
    upper: int
    row_types: tuple[TypeInformation, TypeInformation]
    late_tags: tuple[OutputTag | None, OutputTag | None] = (None, None)


class IntervalJoinContext:
    """The context of ``process_element``; the operator sets both times for every pair."""

    def __init__(self) -> None:
        self.left_timestamp = 0
        self.right_timestamp = 0

    def get_left_timestamp(self) -> int:
        return self.left_timestamp

    def get_right_timestamp(self) -> int:
        return self.right_timestamp

    def get_timestamp(self) -> int:
        """The time of the results: the later one of the two."""
        return max(self.left_timestamp, self.right_timestamp)


class IntervalJoinOperator(TimedOperator):
    """Keeps the rows of both sides by time, and pairs each new one with those of the other side."""

    def __init__(self, spec: OperatorSpec) -> None:
        super().__init__(spec)
        self._join: IntervalJoinSpec = self.body
        self.function = self._join.function
        #: By side: where the times of the other one's rows begin and end, relative to a row's own; and how long a row
        #: is kept behind its time.
        lower, upper = self._join.lower, self._join.upper
        self._reach = ((lower, upper), (-upper, -lower))
        self._kept_for = (max(0, upper), max(0, -lower))

    def bind_state(self) -> None:
        super().bind_state()
        names = ("left-buffer", "right-buffer")
        self._buffers = [
            self.keyed_state.state(MapStateDescriptor(name, Types.LONG(), Types.LIST(row_type)))
            for name, row_type in zip(names, self._join.row_types, strict=True)
        ]
        self._context = IntervalJoinContext()

    def timers(self, domain: TimeDomain) -> TimerQueue:
        return self.timer_manager.queue("cleanup-timers", domain, Types.BYTE())

    def process(self, batch: Batch, input_index: int) -> None:
        if batch.timestamps is None or batch.watermarks is None or None in batch.timestamps:
            raise ProgramError(
                f"{self.where} joins by event time, and rows without event times came. Put "
                "assign_timestamps_and_watermarks(...) before key_by(...) on both streams."
            )
        context = self.key_context
        key = value = None
        try:
            for key, identity, value, timestamp, watermark in zip(
                *self.keys_of(batch), batch.values, batch.timestamps, batch.watermarks, strict=True
            ):
                if watermark > self.watermark:
                    self.advance(watermark)
                context.key, context.identity = key, identity
                self._add(value, timestamp, input_index)
        except BaseException as error:
            raise self.failure(error, value, key) from error
        self.flush()

    def _add(self, row: Any, timestamp: Any, side: int) -> None:
        if timestamp < self.watermark:
            tag = self._join.late_tags[side]
            self.emit(None if tag is None else [(tag, row)], timestamp)
            return
        buffer = self._buffers[side]
        buffer.put(timestamp, [*(buffer.get(timestamp) or ()), row])
        first, last = (timestamp + bound for bound in self._reach[side])
        for time, others in self._buffers[1 - side].between(max(first, _FIRST), min(last, _LAST)):
            for other in others:
                pair = (row, other) if side == _LEFT else (other, row)
                self._pair(pair, (timestamp, time) if side == _LEFT else (time, timestamp))
        self._event_timers.register(timestamp + self._kept_for[side], self.key_context.key, side)

    def _pair(self, pair: tuple[Any, Any], times: tuple[int, int]) -> None:
        context = self._context
        context.left_timestamp, context.right_timestamp = times
        self.emit(method_of(self.function, "process_element")(*pair, context), max(times))

    def on_timer(self, timestamp: int, namespace: Any, domain: TimeDomain) -> None:
        self._buffers[namespace].remove(timestamp - self._kept_for[namespace])
