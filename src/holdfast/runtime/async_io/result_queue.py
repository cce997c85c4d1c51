"""The order in which results leave: calls and watermarks as they came, and which of them may be handed on.

A queue belongs to the task's thread. The thread of the calls says of each call when it is over, and nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence

from holdfast.runtime.async_io.calls import Call


class ResultQueue(ABC):
    """Calls whose results were not handed on yet, and the watermarks between them."""

    @abstractmethod
    def add(self, calls: Sequence[Call]) -> None:
        """Calls in the order of their rows, before they begin."""

    @abstractmethod
    def add_watermark(self, watermark: int) -> None:
        """Event time has come to ``watermark``, behind all calls that were added before."""

    @abstractmethod
    def ready(self) -> Iterator[list[Call] | int]:
        """Calls that are over, and watermarks, in the order in which they leave the queue."""

    @abstractmethod
    def __bool__(self) -> bool:
        """Whether anything is left in it."""


class OrderedQueue(ResultQueue):
    """Results leave in the order of their rows."""

    def __init__(self) -> None:
        self._entries: deque[Call | int] = deque()

    def add(self, calls: Sequence[Call]) -> None:
        self._entries.extend(calls)

    def add_watermark(self, watermark: int) -> None:
        self._entries.append(watermark)

    def ready(self) -> Iterator[list[Call] | int]:
        entries, calls = self._entries, list[Call]()
        while entries:
            first = entries[0]
            if isinstance(first, int):
                if calls:
                    yield calls
                    calls = []
                yield first
            elif first.results is not None:
                calls.append(first)
            else:
                break
            entries.popleft()
        if calls:
            yield calls

    def __bool__(self) -> bool:
        return bool(self._entries)


class _Segment:
    """Calls between two watermarks. Their results may leave in any order."""

    __slots__ = ("finished", "left", "watermark")

    def __init__(self, watermark: int | None) -> None:
        #: The watermark in force for its rows.
        self.watermark = watermark
        #: How many have not been handed on.
        self.left = 0
        #: Filled by the thread of the calls.
        self.finished: deque[Call] = deque()

    def take(self) -> list[Call]:
        calls = [self.finished.popleft() for _ in range(len(self.finished))]
        self.left -= len(calls)
        return calls


class UnorderedQueue(ResultQueue):
    """Results leave as they come, but do not pass a watermark: neither one that came between the rows, nor the one that
    is in force where the watermark of a row is another than that of the row before.
    """

    def __init__(self) -> None:
        self._entries: deque[_Segment | int] = deque()

    def add(self, calls: Sequence[Call]) -> None:
        last = self._entries[-1] if self._entries else None
        for call in calls:
            if not isinstance(last, _Segment) or last.watermark != call.watermark:
                last = _Segment(call.watermark)
                self._entries.append(last)
            last.left += 1
            call.finished = last.finished

    def add_watermark(self, watermark: int) -> None:
        self._entries.append(watermark)

    def ready(self) -> Iterator[list[Call] | int]:
        entries = self._entries
        while entries:
            first = entries[0]
            if isinstance(first, int):
                yield first
            else:
                calls = first.take()
                if calls:
                    yield calls
                if first.left:
                    break
            entries.popleft()

    def __bool__(self) -> bool:
        return bool(self._entries)
