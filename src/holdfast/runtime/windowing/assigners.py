"""What assigns rows to windows: the contracts, and the assigner of the global window."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from typing import Any, Generic, TypeAlias, TypeVar

from holdfast.runtime.windowing import assigner_context, windows
from holdfast.runtime.windowing.serializers import GlobalWindowSerializer
from holdfast.runtime.windowing.triggers import NeverTrigger, Trigger
from holdfast.runtime.windowing.windows import GlobalWindow

T = TypeVar("T")
W = TypeVar("W")


class WindowAssigner(ABC, Generic[T, W]):
    """Says which windows a row belongs to. It must not keep anything in fields: there is one for all keys, and fields
    are not in checkpoints.
    """

    WindowAssignerContext: TypeAlias = assigner_context.WindowAssignerContext

    @abstractmethod
    def assign_windows(
        self, element: T, timestamp: int, context: assigner_context.WindowAssignerContext
    ) -> Collection[W]:
        """The windows of a row; none drops it. ``timestamp`` is None on a stream without event time."""

    @abstractmethod
    def get_default_trigger(self, env: Any) -> Trigger[T, W]:
        """The trigger unless the program sets one. ``env`` is the execution environment."""

    @abstractmethod
    def get_window_serializer(self) -> Any:
        """``TimeWindowSerializer()``, ``CountWindowSerializer()``, or ``WindowSerializer(type)`` for windows of your
        own.
        """

    @abstractmethod
    def is_event_time(self) -> bool:
        """Whether windows end by the watermark, and rows can be late, or by processing time."""

    def open(self, context: assigner_context.WindowAssignerContext) -> None:
        """Called whenever a process takes the operator up, before the first row: to ask for state once."""


class MergingWindowAssigner(WindowAssigner[T, W]):
    """Gives every row a window of its own, and merges windows."""

    MergeCallback: TypeAlias = windows.MergeCallback

    @abstractmethod
    def merge_windows(self, windows: Iterable[W], callback: windows.MergeCallback) -> None:
        """Call ``callback.merge(windows, result)`` for every group of windows of a key that merge."""


class GlobalWindows(WindowAssigner[Any, GlobalWindow]):
    """One window for all rows of a key. It never ends: give it a trigger."""

    @staticmethod
    def create() -> GlobalWindows:
        return GlobalWindows()

    def assign_windows(
        self, element: Any, timestamp: int, context: assigner_context.WindowAssignerContext
    ) -> Collection[GlobalWindow]:
        return _ONLY

    def get_default_trigger(self, env: Any) -> Trigger[Any, GlobalWindow]:
        return NeverTrigger()

    def get_window_serializer(self) -> GlobalWindowSerializer:
        return GlobalWindowSerializer()

    def is_event_time(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "GlobalWindows()"


_ONLY = (GlobalWindow.get(),)
