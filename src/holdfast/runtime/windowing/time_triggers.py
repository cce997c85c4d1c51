"""Triggers that fire by time: once at the end of a window, or again and again before it."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

from holdfast.errors import ProgramError
from holdfast.runtime.windowing.trigger_contexts import OnMergeContext, TriggerContext
from holdfast.runtime.windowing.triggers import Trigger, TriggerResult
from holdfast.runtime.windowing.windows import MAX_TIMESTAMP
from holdfast.state.descriptors import ReducingStateDescriptor
from holdfast.types.durations import milliseconds_of
from holdfast.types.typeinfo import Types


class EventTimeTrigger(Trigger[Any, Any]):
    """Fires when the watermark passes the end of the window, and for every row that comes later and is not late."""

    @staticmethod
    def create() -> EventTimeTrigger:
        return EventTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        end = window.max_timestamp()
        if end <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(end)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: OnMergeContext) -> None:
        # One that is past fires with the row that merged it.
        if window.max_timestamp() > ctx.get_current_watermark():
            ctx.register_event_time_timer(window.max_timestamp())

    def clear(self, window: Any, ctx: TriggerContext) -> None:
        ctx.delete_event_time_timer(window.max_timestamp())


class ProcessingTimeTrigger(Trigger[Any, Any]):
    """Fires when the clock passes the end of the window."""

    @staticmethod
    def create() -> ProcessingTimeTrigger:
        return ProcessingTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        ctx.register_processing_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        return TriggerResult.FIRE

    def on_event_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: OnMergeContext) -> None:
        if window.max_timestamp() > ctx.get_current_processing_time():
            ctx.register_processing_time_timer(window.max_timestamp())

    def clear(self, window: Any, ctx: TriggerContext) -> None:
        ctx.delete_processing_time_timer(window.max_timestamp())


class _Continuous(Trigger[Any, Any]):
    """Fires at every multiple of an interval. The next one is state; of merged windows the earliest counts."""

    def __init__(self, interval: int) -> None:
        if interval <= 0:
            raise ProgramError(f"{type(self).__name__} was given an interval of {interval} ms; it must be above 0.")
        self.interval = interval
        self._next = ReducingStateDescriptor("fire-time", min, Types.LONG())

    @classmethod
    def of(cls, interval: Any) -> Self:
        return cls(milliseconds_of(interval))

    @abstractmethod
    def register(self, time: int, ctx: TriggerContext) -> None:
        """Set a timer of its domain."""

    @abstractmethod
    def delete(self, time: int, ctx: TriggerContext) -> None:
        """Delete a timer of its domain."""

    @abstractmethod
    def now(self, ctx: TriggerContext) -> int:
        """The time of its domain."""

    def begin(self, time: int, window: Any, ctx: TriggerContext) -> None:
        """The window has a row: fire at the next multiple of the interval."""
        if ctx.get_partitioned_state(self._next).get() is None:
            self._go_on(time - time % self.interval, window, ctx)

    def fires_at(self, time: int, window: Any, ctx: TriggerContext) -> bool:
        """Whether a timer is the one that was set; the next one is set then."""
        state = ctx.get_partitioned_state(self._next)
        if state.get() != time:
            return False
        state.clear()
        end = window.max_timestamp()
        # At the end of time a window that has no end would fire for ever.
        if time < end and (end < MAX_TIMESTAMP or self.now(ctx) < MAX_TIMESTAMP):
            self._go_on(time, window, ctx)
        return True

    def _go_on(self, time: int, window: Any, ctx: TriggerContext) -> None:
        following = min(time + self.interval, window.max_timestamp())
        ctx.get_partitioned_state(self._next).add(following)
        self.register(following, ctx)

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: OnMergeContext) -> None:
        ctx.merge_partitioned_state(self._next)
        following = ctx.get_partitioned_state(self._next).get()
        if following is not None:
            self.register(following, ctx)

    def clear(self, window: Any, ctx: TriggerContext) -> None:
        state = ctx.get_partitioned_state(self._next)
        following = state.get()
        if following is not None:
            self.delete(following, ctx)
            state.clear()


class ContinuousEventTimeTrigger(_Continuous):
    """Fires whenever the watermark passes a multiple of the interval, and at the end of the window."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        if window.max_timestamp() <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        self.begin(timestamp, window, ctx)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        due = self.fires_at(time, window, ctx)
        return TriggerResult.FIRE if due or time == window.max_timestamp() else TriggerResult.CONTINUE

    def on_merge(self, window: Any, ctx: OnMergeContext) -> None:
        super().on_merge(window, ctx)
        if window.max_timestamp() > ctx.get_current_watermark():
            ctx.register_event_time_timer(window.max_timestamp())

    def clear(self, window: Any, ctx: TriggerContext) -> None:
        ctx.delete_event_time_timer(window.max_timestamp())
        super().clear(window, ctx)

    def now(self, ctx: TriggerContext) -> int:
        return ctx.get_current_watermark()

    def register(self, time: int, ctx: TriggerContext) -> None:
        ctx.register_event_time_timer(time)

    def delete(self, time: int, ctx: TriggerContext) -> None:
        ctx.delete_event_time_timer(time)

    def __repr__(self) -> str:
        return f"ContinuousEventTimeTrigger({self.interval})"


class ContinuousProcessingTimeTrigger(_Continuous):
    """Fires whenever the clock passes a multiple of the interval."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        self.begin(ctx.get_current_processing_time(), window, ctx)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        return TriggerResult.FIRE if self.fires_at(time, window, ctx) else TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def now(self, ctx: TriggerContext) -> int:
        return ctx.get_current_processing_time()

    def register(self, time: int, ctx: TriggerContext) -> None:
        ctx.register_processing_time_timer(time)

    def delete(self, time: int, ctx: TriggerContext) -> None:
        ctx.delete_processing_time_timer(time)

    def __repr__(self) -> str:
        return f"ContinuousProcessingTimeTrigger({self.interval})"
