"""The operator behind ``window()``: contents of windows as state, firing by triggers, and cleaning up by timers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from holdfast.errors import ProgramError, StateMigrationError
from holdfast.runtime.batch import Batch
from holdfast.runtime.keyed import TimedOperator
from holdfast.runtime.output_tag import OutputTag
from holdfast.runtime.plan import OperatorSpec
from holdfast.runtime.windowing.assigner_context import WindowAssignerContext
from holdfast.runtime.windowing.assigners import MergingWindowAssigner, WindowAssigner
from holdfast.runtime.windowing.contexts import WindowContext, WindowTriggerContext
from holdfast.runtime.windowing.evictors import Evictor
from holdfast.runtime.windowing.functions import WindowProcess
from holdfast.runtime.windowing.merging import MergingWindowSet
from holdfast.runtime.windowing.serializers import window_serializer
from holdfast.runtime.windowing.time_triggers import EventTimeTrigger, ProcessingTimeTrigger
from holdfast.runtime.windowing.timers import WindowTimers
from holdfast.runtime.windowing.triggers import Trigger, TriggerResult
from holdfast.runtime.windowing.windows import MAX_TIMESTAMP
from holdfast.state.descriptors import StateDescriptor
from holdfast.state.key_merging import MERGING_WINDOW_SET
from holdfast.state.list_state import KeyedListState
from holdfast.state.timers import TimeDomain, TimerQueue


@dataclass(frozen=True)
class WindowSpec:
    """What a program says of its windows."""

    assigner: WindowAssigner[Any, Any]
    trigger: Trigger[Any, Any]
    #: The state of a window's contents: a list, or what rows are reduced or aggregated to.
    contents: StateDescriptor
    function: WindowProcess
    allowed_lateness: int = 0
    late_tag: OutputTag | None = None
    evictor: Evictor | None = None
    #: Contents, and with an evictor the function, are given pairs of a row and its event time.
    timed: bool = False


class WindowOperator(TimedOperator):
    """Adds each row to its windows, and gives the contents of a window that fires to the function.

    Contents are state with the window as its namespace; for windows that merge, under one that their set names. Every
    window that ends has a timer by which all of it is removed.
    """

    def __init__(self, spec: OperatorSpec) -> None:
        super().__init__(spec)
        self.plan: WindowSpec = self.body
        self.function = self.plan.function
        self.windows = window_serializer(self.plan.assigner.get_window_serializer())
        self._event_time: bool = self.plan.assigner.is_event_time()
        #: By the clock nothing is late.
        self._lateness = self.plan.allowed_lateness if self._event_time else 0
        # All that these do for a row is to set the timer of the window's end, which is that of its removal.
        usual = EventTimeTrigger if self._event_time else ProcessingTimeTrigger
        self._fires_once = type(self.plan.trigger) is usual and self._lateness == 0
        self._assign, self._on_element = self.plan.assigner.assign_windows, self.plan.trigger.on_element
        self._namespace = self.windows.namespace
        self._firing_at: int | None = None
        #: What is stored of a row and its time, where that is not the row.
        self._stored: Callable[[Any, int | None], Any] | None = _with_time if self.plan.timed else None

    def bind_state(self) -> None:
        super().bind_state()
        plan, keyed_state = self.plan, self.keyed_state
        self._check_restored(isinstance(plan.assigner, MergingWindowAssigner))
        self._contents = keyed_state.state(plan.contents, self.windows.type_info, owned=plan.contents.kind != "list")
        self._list = isinstance(self._contents, KeyedListState)
        self._merging: MergingWindowSet | None = None
        if isinstance(plan.assigner, MergingWindowAssigner):
            self._merging = MergingWindowSet(keyed_state, plan.assigner, self.windows)
        self.event_timers = WindowTimers(self._event_timers, self.key_context, self.windows)
        self.processing_timers = WindowTimers(self._processing_timers, self.key_context, self.windows)
        self._cleanup_timers = self.event_timers if self._event_time else self.processing_timers
        self._trigger_context = WindowTriggerContext(self)
        self._context: WindowContext[Any] = WindowContext(self, self._merging is not None)
        self._assigner_context = WindowAssignerContext(self.runtime_context)
        plan.assigner.open(self._assigner_context)

    def _check_restored(self, merging: bool) -> None:
        """Windows that merge are found by their set alone: without it their contents would stay for ever."""
        stored = self.keyed_state.restored_names()
        if self.plan.contents.name in stored and (MERGING_WINDOW_SET in stored) is not merging:
            raise StateMigrationError(
                f"{self.where}: its windows {'did not merge' if merging else 'merged'} when its state was stored, and "
                f"those of {self.plan.assigner!r} {'do' if merging else 'do not'}. Use the old assigner, or give the "
                "operator another uid, under which it starts without this state."
            )

    def timers(self, domain: TimeDomain) -> TimerQueue:
        return self.timer_manager.queue("window-timers", domain, self.windows.type_info)

    # -- rows

    def process(self, batch: Batch, input_index: int) -> None:
        rows = len(batch)
        timestamps = batch.timestamps if batch.timestamps is not None else [None] * rows
        watermarks = batch.watermarks if batch.watermarks is not None else [self.watermark] * rows
        if self._event_time and None in timestamps:
            raise self._no_time()
        context, add = self.key_context, self._add
        # One look at the clock for a batch: its rows came together.
        self._assigner_context.processing_time = self.processing_time()
        key = value = None
        try:
            for key, identity, value, timestamp, watermark in zip(
                *self.keys_of(batch), batch.values, timestamps, watermarks, strict=True
            ):
                if watermark > self.watermark:
                    self._advance(watermark)
                context.key, context.identity = key, identity
                add(value, timestamp)
        except BaseException as error:
            raise self.failure(error, value, key) from error
        self._flush()

    def _add(self, value: Any, timestamp: Any) -> None:
        """A row of the current key."""
        skipped, event_time, merging = True, self._event_time, self._merging
        contents, stored, triggers = self._contents, self._stored, self._trigger_context
        for window in self._assign(value, timestamp, self._assigner_context):
            holder = window
            if merging is not None:
                added = merging.add(window, self._merge, self._is_over)
                if added is None:
                    continue
                window, holder = added
            cleanup = window.max_timestamp() + self._lateness
            if event_time and cleanup <= self.watermark:
                if merging is not None:
                    merging.retire(window)
                continue
            skipped = False
            contents.set_current_namespace(self._namespace(holder))
            contents.add(value if stored is None else stored(value, timestamp))
            if not self._fires_once:
                triggers.window = window
                result = self._on_element(value, timestamp, window, triggers)
                if result is not TriggerResult.CONTINUE:
                    self._act(result, window, last=False)
                if cleanup >= MAX_TIMESTAMP:
                    continue
            self._cleanup_timers.register(cleanup, window)
        if skipped and event_time and timestamp + self._lateness <= self.watermark:
            self.late(value, timestamp)

    def late(self, value: Any, timestamp: int) -> None:
        """A row all of whose windows are gone."""
        if self.plan.late_tag is not None:
            self._emit([(self.plan.late_tag, value)], timestamp)

    def _is_over(self, result: Any, group: list[Any]) -> bool:
        """Whether nothing can come into a window any more: not into those that are to become it either, which are there
        because lateness was more before a restore.
        """
        now = self.watermark if self._event_time else self.processing_time()
        if self._cleanup_time(result) > now:
            return False
        if any(self._cleanup_time(window) > now for window in group):
            raise ProgramError(
                f"{self.where}: the windows {group} were merged into {result}, which has ended at {now}. The end of a "
                "window must not go back: give a result of merge_windows() that covers what it was made of."
            )
        # By the clock, which goes on while the rows of a batch are taken, nothing is late.
        return self._event_time

    def _merge(self, result: Any, group: list[Any], holder: Any, others: list[Any]) -> None:
        """Windows of the current key became one, which has the namespace of ``holder`` for its contents."""
        triggers, trigger, namespace = self._trigger_context, self.plan.trigger, self._namespace
        triggers.window, triggers.merged = result, group
        trigger.on_merge(result, triggers)
        for window in group:
            triggers.window = window
            trigger.clear(window, triggers)
            cleanup = self._cleanup_time(window)
            if cleanup < MAX_TIMESTAMP:
                self._cleanup_timers.delete(cleanup, window)
        if others:
            self._contents.merge_namespaces(namespace(holder), [namespace(other) for other in others])

    # -- time

    def processing_time(self) -> int:
        """The time that timers fire for, while they do: at the end of a batch it is the end of time."""
        return self.environment.clock() if self._firing_at is None else self._firing_at

    def fire_processing_timers(self, now: int) -> None:
        self._firing_at = now
        try:
            super().fire_processing_timers(now)
        finally:
            self._firing_at = None

    def on_timer(self, timestamp: int, namespace: Any, domain: TimeDomain) -> None:
        window = self.windows.restore(namespace)
        by_event = domain is TimeDomain.EVENT_TIME
        (self.event_timers if by_event else self.processing_timers).gone(timestamp, window)
        holder = window if self._merging is None else self._merging.state_window(window)
        if holder is None:
            if by_event is self._event_time:
                self._go_on(timestamp)
            return
        self._contents.set_current_namespace(self._namespace(holder))
        triggers, trigger = self._trigger_context, self.plan.trigger
        triggers.window = window
        fire = trigger.on_event_time if by_event else trigger.on_processing_time
        result = fire(timestamp, window, triggers)
        last = by_event is self._event_time and timestamp >= self._cleanup_time(window)
        if result is not TriggerResult.CONTINUE:
            self._act(result, window, last)
        if last:
            self._clear(window)
        elif by_event is self._event_time and timestamp >= window.max_timestamp():
            self._keep_for_a_while(window)

    def _keep_for_a_while(self, window: Any) -> None:
        """A window has fired at its end. Where lateness was less when its rows came, nothing else would remove it."""
        cleanup = self._cleanup_time(window)
        if cleanup < MAX_TIMESTAMP:
            self._cleanup_timers.register(cleanup, window)

    def _go_on(self, timestamp: int) -> None:
        """A timer was of a window that has become part of another, which may have had no timer but this until now: then
        not that of its removal either, which the loop sets for every row.
        """
        assert self._merging is not None, "only windows that merge become others"
        for window in self._merging.windows():
            cleanup = self._cleanup_time(window)
            if cleanup < MAX_TIMESTAMP and not self._cleanup_timers.has(cleanup, window):
                for time in {window.max_timestamp(), cleanup}:
                    if timestamp <= time:
                        self._cleanup_timers.register(time, window)

    def _cleanup_time(self, window: Any) -> int:
        """When the window goes; MAX_TIMESTAMP is never."""
        return min(int(window.max_timestamp()) + self._lateness, MAX_TIMESTAMP)

    def _clear(self, window: Any) -> None:
        """Remove the current key's window."""
        self._contents.clear()
        self._trigger_context.window = window
        self.plan.trigger.clear(window, self._trigger_context)
        self.plan.function.clear(self._context.at(window))
        if self._merging is not None:
            self._merging.retire(window)

    # -- firing

    def _act(self, result: TriggerResult, window: Any, last: bool) -> None:
        """Do what a trigger says with the window whose contents are at hand. ``last``: the window is removed next."""
        purge = result.is_purge()
        if result.is_fire():
            self.fire(window, keep=not (purge or last))
        if purge:
            self._contents.clear()

    def fire(self, window: Any, keep: bool) -> None:
        """Give the contents to the function, if there are any. ``keep``: they are needed again."""
        contents = self._contents.get()
        if self._list:
            if not contents:
                return
        elif contents is None:
            return
        else:
            if keep:
                self._contents.keep_copy()
            contents = [contents]
        self.call_function(window, contents)

    def call_function(self, window: Any, elements: list[Any]) -> None:
        results = self.plan.function.process(self.key_context.key, self._context.at(window), elements)
        self._emit(results, window.max_timestamp())

    def _no_time(self) -> ProgramError:
        return ProgramError(
            f"{self.where} has windows by event time ({self.plan.assigner!r}), and rows without event times came. Put "
            "assign_timestamps_and_watermarks(...) before key_by(...), or use windows by processing time."
        )


def _with_time(value: Any, timestamp: int | None) -> tuple[Any, int | None]:
    return value, timestamp
