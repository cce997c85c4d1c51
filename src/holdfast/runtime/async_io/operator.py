"""Rows through calls that take long and wait most of the time: many of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from holdfast.errors import StateAccessError
from holdfast.runtime.async_io.calls import Call, Calls
from holdfast.runtime.async_io.loop_thread import LoopThread
from holdfast.runtime.async_io.result_queue import OrderedQueue, ResultQueue, UnorderedQueue
from holdfast.runtime.async_io.retrying import RetryStrategy, retried
from holdfast.runtime.batch import Batch
from holdfast.runtime.context import FunctionInitializationContext, KeyedStateStore, RuntimeContext
from holdfast.runtime.functions import FunctionOperator
from holdfast.runtime.operator import MAX_WATERMARK
from holdfast.runtime.plan import OperatorSpec
from holdfast.state.descriptors import StateDescriptor
from holdfast.types.row import Row


@dataclass(frozen=True)
class AsyncWait:
    """What the operator runs, and how."""

    function: Any
    #: None: a call may take any time.
    timeout_seconds: float | None
    capacity: int
    retry_strategy: RetryStrategy
    ordered: bool = True
    #: The function gets pairs of key and row, as PyFlink hands it those of a keyed stream.
    with_keys: bool = False


_pair = Row.factory(("f0", "f1"))


class AsyncRuntimeContext(RuntimeContext):
    """The context of functions whose calls overlap: no key is the current one, so there is no keyed state."""

    def _get(self, descriptor: StateDescriptor) -> NoReturn:
        raise _no_keyed_state(self._environment.where, f"the state '{descriptor.get_name()}'")


class _AsyncInitializationContext(FunctionInitializationContext):
    def get_keyed_state_store(self) -> KeyedStateStore:
        raise _no_keyed_state(self.environment.where, "its keyed state")


def _no_keyed_state(where: str, asked: str) -> StateAccessError:
    return StateAccessError(
        f"{where} asked for {asked}: an AsyncFunction has no keyed state, because calls for several keys are under way "
        "at the same time. Keep it in a keyed process function, before or behind the asynchronous one."
    )


class AsyncWaitOperator(FunctionOperator):
    """Calls ``async_invoke`` for every row, in an asyncio loop beside the task's thread, and hands the results on in
    the task's thread.

    No call outlives its epoch: rows, snapshots and timers of other operators see only results. So nothing of a call is
    ever stored, and one that was under way when its task failed is made again with its row.
    """

    yields_rows = True
    context_class = AsyncRuntimeContext

    def __init__(self, spec: OperatorSpec) -> None:
        super().__init__(spec)
        self._asked: AsyncWait = self.body
        self.function = self._asked.function
        self._queue: ResultQueue = OrderedQueue() if self._asked.ordered else UnorderedQueue()
        self._calls: Calls | None = None
        self._loop: LoopThread | None = None

    def initialization_context(self) -> FunctionInitializationContext:
        return _AsyncInitializationContext(self.environment)

    def process(self, batch: Batch, input_index: int) -> None:
        calls = self._calls_of(batch)
        # What is over by then goes on while the next ones run, into calls of a function that may be chained to it.
        for start in range(0, len(calls), self._asked.capacity):
            self._begin(calls[start : start + self._asked.capacity])
            self._hand_on()

    def process_watermark(self, watermark: int) -> None:
        if watermark <= self.watermark:
            return
        self.watermark = watermark
        self._queue.add_watermark(watermark)
        if watermark == MAX_WATERMARK:
            # Those behind it are told that the input has ended as soon as this returns.
            self._end()
        else:
            self._hand_on()

    def end_rows(self) -> None:
        self._end()

    def finish(self) -> None:
        # Others may have given it their last rows.
        self._end()
        super().finish()

    def let_go(self) -> None:
        if self._loop is not None:
            self._loop.close()
            self._loop = self._calls = None

    def _begin(self, calls: Sequence[Call]) -> None:
        if self._loop is None or self._calls is None:
            self._loop, self._calls = LoopThread(f"async calls of {self.where}"), self._new_calls()
        self._queue.add(calls)
        self._check(self._loop.run(self._calls.begin(calls)))

    def _end(self) -> None:
        """Wait for all calls, and hand their results on."""
        if self._queue and self._loop is not None and self._calls is not None:
            self._check(self._loop.run(self._calls.end()))
        self._hand_on()

    def _new_calls(self) -> Calls:
        asked = self._asked
        invoke = retried(self.function.async_invoke, asked.retry_strategy)
        return Calls(invoke, self.function.timeout, asked.timeout_seconds, asked.capacity, self._copies)

    def _check(self, failed: Call | None) -> None:
        if failed is not None and failed.error is not None:
            raise self.failure(failed.error, failed.row) from failed.error

    def _hand_on(self) -> None:
        for ready in self._queue.ready():
            if isinstance(ready, int):
                self.output.emit_watermark(ready)
            else:
                self.output.collect(self._batch_of(ready))

    def _calls_of(self, batch: Batch) -> list[Call]:
        rows = batch.values
        if self._asked.with_keys:
            assert batch.keys is not None, "the rows of a keyed stream come with their keys"
            rows = list(map(_pair, zip(batch.keys, rows, strict=True)))
        if batch.timestamps is None or batch.watermarks is None:
            return list(map(Call, rows))
        return list(map(Call, rows, batch.timestamps, batch.watermarks))

    def _batch_of(self, calls: list[Call]) -> Batch:
        """Their results, with the times of their rows."""
        rows = [row for call in calls for row in call.results or ()]
        if not self.spec.event_time:
            return Batch(rows)
        timestamps = [call.timestamp for call in calls for _ in call.results or ()]
        return Batch(rows, timestamps, [call.watermark for call in calls for _ in call.results or ()])
