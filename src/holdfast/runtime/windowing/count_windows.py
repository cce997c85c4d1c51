"""Windows of a number of rows of a key. Only full ones fire, and what they held is removed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection
from typing import Any

from holdfast.errors import ProgramError
from holdfast.runtime.windowing.assigner_context import WindowAssignerContext
from holdfast.runtime.windowing.assigners import WindowAssigner
from holdfast.runtime.windowing.serializers import CountWindowSerializer
from holdfast.runtime.windowing.triggers import CountTrigger, PurgingTrigger, Trigger
from holdfast.runtime.windowing.windows import CountWindow
from holdfast.state.descriptors import ValueStateDescriptor
from holdfast.state.states import ValueState
from holdfast.types.typeinfo import Types


class _CountWindows(WindowAssigner[Any, CountWindow]):
    _counted: ValueState[int]

    def __init__(self, window_size: int, window_slide: int) -> None:
        if window_size <= 0 or window_slide <= 0:
            raise ProgramError(
                f"{type(self).__name__} was given a size of {window_size} rows and a slide of {window_slide}; both "
                "must be above 0."
            )
        self._window_size = window_size
        self._window_slide = window_slide

    @abstractmethod
    def counter_name(self) -> str:
        """The state that numbers the rows of a key."""

    def open(self, context: WindowAssignerContext) -> None:
        descriptor = ValueStateDescriptor(self.counter_name(), Types.LONG())
        self._counted = context.get_runtime_context().get_state(descriptor)

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssignerContext) -> Collection[CountWindow]:
        number = self._counted.value() or 0
        self._counted.update(number + 1)
        last = number // self._window_slide
        first = max(0, -(-(number - self._window_size + 1) // self._window_slide))
        return [CountWindow(window) for window in range(last, first - 1, -1)]

    def get_default_trigger(self, env: Any) -> Trigger[Any, CountWindow]:
        # A full window gets no more rows, and no timer ends it.
        return PurgingTrigger(CountTrigger(self._window_size))

    def get_window_serializer(self) -> CountWindowSerializer:
        return CountWindowSerializer()

    def is_event_time(self) -> bool:
        return False


class CountTumblingWindowAssigner(_CountWindows):
    """``window_size`` rows after the other."""

    def __init__(self, window_size: int) -> None:
        super().__init__(window_size, window_size)

    @staticmethod
    def of(window_size: int) -> CountTumblingWindowAssigner:
        return CountTumblingWindowAssigner(window_size)

    def counter_name(self) -> str:
        return "tumble-count-assigner"

    def __repr__(self) -> str:
        return f"CountTumblingWindowAssigner({self._window_size})"


class CountSlidingWindowAssigner(_CountWindows):
    """``window_size`` rows, beginning with every ``window_slide``-th."""

    @staticmethod
    def of(window_size: int, window_slide: int) -> CountSlidingWindowAssigner:
        return CountSlidingWindowAssigner(window_size, window_slide)

    def counter_name(self) -> str:
        return "slide-count-assigner"

    def __repr__(self) -> str:
        return f"CountSlidingWindowAssigner({self._window_size}, {self._window_slide})"
