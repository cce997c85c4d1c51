"""The calls of one operator that are under way: how many at once, for how long, and what comes of them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from holdfast.runtime.yielded import copied
from holdfast.types.row import Row

#: The rows that a function gives for one row.
Results = list[Any]
Invocation = Callable[[Any], Awaitable[Any]]


class Call:
    """One row, and what ``async_invoke`` or ``timeout`` gave for it: ``results``, or the ``error`` that it raised. It
    is over when either is there.
    """

    __slots__ = ("error", "finished", "results", "row", "task", "timer", "timestamp", "watermark")

    def __init__(self, row: Any, timestamp: int | None = None, watermark: int | None = None) -> None:
        self.row = row
        self.timestamp = timestamp
        self.watermark = watermark
        self.results: Results | None = None
        self.error: BaseException | None = None
        #: Where it is to be put when it has results.
        self.finished: deque[Call] | None = None
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None

    @property
    def over(self) -> bool:
        return self.results is not None or self.error is not None


class Calls:
    """At most ``capacity`` calls at a time; the others wait for their turn. Everything but the constructor runs in the
    asyncio loop, so that nothing is locked: whoever waits does so with ``begin`` or ``end``.

    A call that takes longer than ``timeout_seconds`` is cancelled, and ``on_timeout`` gives results in its place. After
    the first error no more calls begin. With ``copies`` results stay as they were when the function gave them.
    """

    def __init__(
        self,
        invoke: Invocation,
        on_timeout: Callable[[Any], Any],
        timeout_seconds: float | None,
        capacity: int,
        copies: bool,
    ) -> None:
        self._invoke = invoke
        self._on_timeout = on_timeout
        self._timeout_seconds = timeout_seconds
        self._capacity = capacity
        self._copies = copies
        self._waiting: deque[Call] = deque()
        self._running = 0
        self._failed: Call | None = None
        #: Of the one who waits: what for, and how to wake it.
        self._reached: Callable[[], bool] = lambda: True
        self._waiter: asyncio.Future[None] | None = None

    async def begin(self, calls: Iterable[Call]) -> Call | None:
        """Returns when all of them run, or are over; at once with a call that has failed, if there is one."""
        self._waiting.extend(calls)
        self._begin_waiting()
        return await self._until(lambda: not self._waiting)

    async def end(self) -> Call | None:
        """Returns when no call is left, or at once with one that has failed."""
        return await self._until(lambda: not self._running)

    async def _until(self, reached: Callable[[], bool]) -> Call | None:
        if self._failed is None and not reached():
            self._reached, self._waiter = reached, asyncio.get_running_loop().create_future()
            await self._waiter
        return self._failed

    def _begin_waiting(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting and self._running < self._capacity and self._failed is None:
            call = self._waiting.popleft()
            self._running += 1
            if self._timeout_seconds is not None:
                call.timer = loop.call_later(self._timeout_seconds, self._time_out, call)
            call.task = loop.create_task(self._run(call))

    async def _run(self, call: Call) -> None:
        try:
            results = self._rows_of(await self._invoke(call.row), "async_invoke")
        except BaseException as error:
            # Of one that was timed out this is the end that nobody waits for.
            if not call.over:
                self._fail(call, error)
        else:
            if not call.over:
                self._finish(call, results)

    def _time_out(self, call: Call) -> None:
        assert call.task is not None
        call.task.cancel()
        try:
            results = self._rows_of(self._on_timeout(call.row), "timeout")
        except BaseException as error:
            self._fail(call, error)
        else:
            self._finish(call, results)

    def _finish(self, call: Call, results: Results) -> None:
        call.results = results
        if call.finished is not None:
            call.finished.append(call)
        self._leave(call)
        self._begin_waiting()
        self._wake()

    def _fail(self, call: Call, error: BaseException) -> None:
        call.error = error
        self._failed = self._failed or call
        self._leave(call)
        self._wake()

    def _leave(self, call: Call) -> None:
        self._running -= 1
        if call.timer is not None:
            call.timer.cancel()

    def _wake(self) -> None:
        if self._waiter is not None and (self._failed is not None or self._reached()):
            self._waiter.set_result(None)
            self._waiter = None

    def _rows_of(self, results: Any, method: str) -> Results:
        """What a function gave, if it can be rows."""
        # One row that looks like several would come out in pieces.
        if isinstance(results, (str, bytes, Mapping, Row)) or not isinstance(results, Iterable):
            raise TypeError(
                f"{method}() gives a list of rows, [row] for one and [] for none; this one gave "
                f"{type(results).__name__}: {results!r}"
            )
        return list(map(copied, results) if self._copies else results)
