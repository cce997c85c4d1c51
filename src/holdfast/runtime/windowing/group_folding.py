"""How the rows of a batch are folded into windows of a fixed size, and how what is kept of these is given out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.runtime.batch import Batch
from holdfast.runtime.event_times import Numbers
from holdfast.runtime.windowing.folding import Groups
from holdfast.runtime.windowing.keys_of_batch import KeysOfBatch
from holdfast.runtime.windowing.windows import TimeWindow
from holdfast.state.timers import TimeDomain, TimerQueue

if TYPE_CHECKING:
    from holdfast.runtime.windowing.operator import WindowOperator
    from holdfast.runtime.windowing.stored_contents import BatchContents


class PassingWindow(NamedTuple):
    """A window that begins and ends within a batch."""

    window: TimeWindow
    #: The identities and the keys that have it, and what is kept for each, in the order in which timers would fire.
    identities: list[Hashable]
    keys: list[Any]
    kept: list[Any]


class GroupFolding(ABC):
    """Works on groups: the rows of a batch with one key in one window."""

    #: A batch of fewer is faster one by one.
    least_rows: int
    #: See BatchTaker.
    by_column: bool

    def __init__(self, operator: WindowOperator, contents: BatchContents) -> None:
        self.operator = operator
        self.contents = contents

    @abstractmethod
    def fits(self, batch: Batch) -> bool:
        """Whether its rows need not go one by one."""

    @abstractmethod
    def keys_of(self, batch: Batch) -> KeysOfBatch: ...

    @abstractmethod
    def folded(
        self, batch: Batch, keys: KeysOfBatch, groups: Groups, rows: Numbers, before: list[Any]
    ) -> list[Any] | None:
        """What is kept of each group, of what was kept before and of its rows, in their order. None, with nothing done,
        where rows must go one by one.
        """

    @abstractmethod
    def fire_passing(self, passing: PassingWindow) -> None:
        """Give a window to the function, which the state never had."""

    def fire_stored(self, timers: TimerQueue, to: int, domain: TimeDomain) -> None:
        """Fire the timers of windows in the state."""
        self.operator.fire_timers(timers.advance(to), domain, self.operator.on_timer)

    def before_timers(self) -> None:
        """See RowTaker."""
