"""What says when a window fires: the contract, and the triggers that do not look at time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import Any, Generic, TypeAlias, TypeVar

from holdfast.coverage.answers import SaysWhatToUse
from holdfast.errors import ProgramError
from holdfast.runtime.windowing import trigger_contexts as contexts
from holdfast.state.descriptors import ReducingStateDescriptor
from holdfast.types.typeinfo import Types

T = TypeVar("T")
W = TypeVar("W")


class TriggerResult(Enum):
    """What happens to the window: FIRE gives its contents to the function, PURGE removes them."""

    CONTINUE = (False, False)
    FIRE_AND_PURGE = (True, True)
    FIRE = (True, False)
    PURGE = (False, True)

    def is_fire(self) -> bool:
        return self.value[0]

    def is_purge(self) -> bool:
        return self.value[1]


class Trigger(SaysWhatToUse, ABC, Generic[T, W]):
    """Says when a window fires. It must not keep anything in fields: there is one for all keys and windows. State
    comes from ``ctx.get_partitioned_state``, and ``clear`` must remove it.
    """

    TriggerContext: TypeAlias = contexts.TriggerContext
    OnMergeContext: TypeAlias = contexts.OnMergeContext

    @abstractmethod
    def on_element(self, element: T, timestamp: int, window: W, ctx: contexts.TriggerContext) -> TriggerResult:
        """A row was added to the window."""

    @abstractmethod
    def on_processing_time(self, time: int, window: W, ctx: contexts.TriggerContext) -> TriggerResult:
        """A processing-time timer of the window is due."""

    @abstractmethod
    def on_event_time(self, time: int, window: W, ctx: contexts.TriggerContext) -> TriggerResult:
        """An event-time timer of the window is due; also when the window is only cleaned up then."""

    def can_merge(self) -> bool:
        """Whether windows of this trigger can be merged: then ``on_merge`` must see to its timers and state."""
        return False

    def on_merge(self, window: W, ctx: contexts.OnMergeContext) -> None:
        """Several windows became ``window``; ``clear`` of each of them comes next."""
        raise ProgramError(f"{type(self).__name__} says that it can merge windows, and has no on_merge().")

    @abstractmethod
    def clear(self, window: W, ctx: contexts.TriggerContext) -> None:
        """The window is gone: remove timers and state."""


class PurgingTrigger(Trigger[Any, Any]):
    """Another trigger, which empties the window whenever it fires."""

    def __init__(self, nested_trigger: Trigger[Any, Any]) -> None:
        self.nested_trigger = nested_trigger

    @staticmethod
    def of(nested_trigger: Trigger[Any, Any]) -> PurgingTrigger:
        return PurgingTrigger(nested_trigger)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: contexts.TriggerContext) -> TriggerResult:
        return _purged(self.nested_trigger.on_element(element, timestamp, window, ctx))

    def on_processing_time(self, time: int, window: Any, ctx: contexts.TriggerContext) -> TriggerResult:
        return _purged(self.nested_trigger.on_processing_time(time, window, ctx))

    def on_event_time(self, time: int, window: Any, ctx: contexts.TriggerContext) -> TriggerResult:
        return _purged(self.nested_trigger.on_event_time(time, window, ctx))

    def can_merge(self) -> bool:
        return self.nested_trigger.can_merge()

    def on_merge(self, window: Any, ctx: contexts.OnMergeContext) -> None:
        self.nested_trigger.on_merge(window, ctx)

    def clear(self, window: Any, ctx: contexts.TriggerContext) -> None:
        self.nested_trigger.clear(window, ctx)


def _purged(result: TriggerResult) -> TriggerResult:
    return TriggerResult.FIRE_AND_PURGE if result is TriggerResult.FIRE else result


class _WithoutTime(Trigger[Any, Any]):
    def on_processing_time(self, time: int, window: Any, ctx: contexts.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: contexts.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE


class CountTrigger(_WithoutTime):
    """Fires when the window has got so many rows since it fired last."""

    def __init__(self, window_size: int) -> None:
        if window_size <= 0:
            raise ProgramError(f"CountTrigger was given {window_size} rows; it must be above 0.")
        self._window_size = window_size
        self._count = ReducingStateDescriptor("count", _sum, Types.LONG())

    @staticmethod
    def of(window_size: int) -> CountTrigger:
        return CountTrigger(window_size)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: contexts.TriggerContext) -> TriggerResult:
        count = ctx.get_partitioned_state(self._count)
        count.add(1)
        if count.get() < self._window_size:
            return TriggerResult.CONTINUE
        count.clear()
        return TriggerResult.FIRE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: contexts.OnMergeContext) -> None:
        ctx.merge_partitioned_state(self._count)

    def clear(self, window: Any, ctx: contexts.TriggerContext) -> None:
        ctx.get_partitioned_state(self._count).clear()


def _sum(one: int, other: int) -> int:
    return one + other


class NeverTrigger(_WithoutTime):
    """Never fires: the trigger of global windows."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: contexts.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: contexts.OnMergeContext) -> None: ...

    def clear(self, window: Any, ctx: contexts.TriggerContext) -> None: ...
