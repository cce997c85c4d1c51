"""The contracts of what triggers are given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from holdfast.runtime.metrics import MetricGroup
from holdfast.state.descriptors import StateDescriptor


class TriggerContext(ABC):
    """The context of triggers. Timers and state are those of the current key and window."""

    @abstractmethod
    def get_current_processing_time(self) -> int: ...

    @abstractmethod
    def get_current_watermark(self) -> int: ...

    @abstractmethod
    def register_processing_time_timer(self, time: int) -> None:
        """``on_processing_time`` is called when the clock has come to ``time``."""

    @abstractmethod
    def register_event_time_timer(self, time: int) -> None:
        """``on_event_time`` is called when the watermark has come to ``time``."""

    @abstractmethod
    def delete_processing_time_timer(self, time: int) -> None: ...

    @abstractmethod
    def delete_event_time_timer(self, time: int) -> None: ...

    @abstractmethod
    def get_partitioned_state(self, state_descriptor: StateDescriptor) -> Any:
        """State of the trigger for the current key and window."""

    @abstractmethod
    def get_metric_group(self) -> MetricGroup:
        """The metric group of the window function's runtime context."""


class OnMergeContext(TriggerContext):
    """The context of ``on_merge``."""

    @abstractmethod
    def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
        """Make the state of all merged windows that of the result: list, reducing or aggregating state."""
