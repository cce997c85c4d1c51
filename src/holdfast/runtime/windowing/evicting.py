"""Windows with an evictor: all rows are kept, with their times, until the window fires."""

from __future__ import annotations

from typing import Any

from holdfast.runtime.plan import OperatorSpec
from holdfast.runtime.windowing.evictors import TimestampedValue
from holdfast.runtime.windowing.operator import WindowOperator


class EvictingWindowOperator(WindowOperator):
    """The evictor removes rows before and after the function sees those that are left."""

    def __init__(self, spec: OperatorSpec) -> None:
        super().__init__(spec)
        self._stored = lambda value, timestamp: (value, timestamp)

    def fire(self, window: Any, keep: bool) -> None:
        elements = [TimestampedValue(*stored) for stored in self._contents.get()]
        if not elements:
            return
        evictor, context, before = self.plan.evictor, self._trigger_context, len(elements)
        assert evictor is not None, "an evicting operator has an evictor"
        evictor.evict_before(elements, before, window, context)
        self.call_function(window, elements if self.plan.timed else [element.value for element in elements])
        evictor.evict_after(elements, len(elements), window, context)
        if keep and len(elements) < before:
            self._contents.update([tuple(element) for element in elements])
