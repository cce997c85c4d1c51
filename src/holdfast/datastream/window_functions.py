"""The functions of windows, with PyFlink's names. They see a window when it fires."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, Generic, TypeAlias, TypeVar

from holdfast.runtime.contracts import Function
from holdfast.runtime.interval_join import IntervalJoinContext
from holdfast.runtime.windowing.contexts import WindowContext

IN = TypeVar("IN")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")
W = TypeVar("W")
#: The windows of a context: classes cannot name their own here.
_W = TypeVar("_W")


class WindowFunction(Function, Generic[IN, OUT, KEY, W]):
    @abstractmethod
    def apply(self, key: KEY, window: W, inputs: Iterable[IN]) -> Iterable[OUT] | None:
        """Any number of rows for the rows of a key in a window."""


class AllWindowFunction(Function, Generic[IN, OUT, W]):
    @abstractmethod
    def apply(self, window: W, inputs: Iterable[IN]) -> Iterable[OUT] | None:
        """Any number of rows for the rows of a window."""


class ProcessWindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Sees the rows of a window, its times, and state of the window and of the key."""

    Context: TypeAlias = WindowContext[_W]

    @abstractmethod
    def process(self, key: KEY, context: WindowContext[W], elements: Iterable[IN]) -> Iterable[OUT] | None:
        """Any number of rows for the rows of a key in a window."""

    def clear(self, context: WindowContext[W]) -> None:
        """The window is gone: remove what is in ``context.window_state()``."""


class ProcessAllWindowFunction(Function, Generic[IN, OUT, W]):
    """A function of all rows of a window, on a stream without keys."""

    Context: TypeAlias = WindowContext[_W]

    @abstractmethod
    def process(self, context: WindowContext[W], elements: Iterable[IN]) -> Iterable[OUT] | None:
        """Any number of rows for the rows of a window."""

    def clear(self, context: WindowContext[W]) -> None:
        """The window is gone: remove what is in ``context.window_state()``."""


class JoinFunction(Function):
    @abstractmethod
    def join(self, first: Any, second: Any) -> Any:
        """One row for a pair of rows."""


class FlatJoinFunction(Function):
    @abstractmethod
    def join(self, first: Any, second: Any) -> Iterable[Any] | None:
        """Any number of rows for a pair of rows."""


class CoGroupFunction(Function):
    @abstractmethod
    def co_group(self, first: Iterable[Any], second: Iterable[Any]) -> Iterable[Any] | None:
        """Any number of rows for the rows of a key in a window, of which one side may have none."""


class ProcessJoinFunction(Function):
    """Sees pairs of rows of one key whose times are within an interval."""

    Context: TypeAlias = IntervalJoinContext

    @abstractmethod
    def process_element(self, left: Any, right: Any, ctx: IntervalJoinContext) -> Iterable[Any] | None:
        """Any number of rows for a pair; their time is the later one of the two."""
