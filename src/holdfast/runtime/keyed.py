"""Operators behind a ``key_by``. The loops here are the hot path: per row they set the key and call the function,
nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

from holdfast.runtime.batch import Batch
from holdfast.runtime.context import FunctionInitializationContext, FunctionSnapshotContext, StateSnapshotContext
from holdfast.runtime.environment import OperatorEnvironment
from holdfast.runtime.functions import FunctionOperator, method_of
from holdfast.runtime.plan import OperatorSpec
from holdfast.runtime.stateless import RowContext, RowMapper, repeat_times, select_rows
from holdfast.runtime.timer_service import BatchTimerService, InternalTimeServiceManager, TimerService
from holdfast.state.descriptors import ValueStateDescriptor
from holdfast.state.keys import KeyCodec
from holdfast.state.timers import TimeDomain, TimerQueue

#: Rows that are made of columns at a time, so that they are still in the processor's cache when their turn comes; and
#: that are handed on in one batch where the end of the input gives any number of them.
ROWS_AT_ONCE = 4096

#: What a timer of the current key calls: its time, its namespace and its domain.
OnTimer = Callable[[int, Any, TimeDomain], None]


class KeyedOperator(FunctionOperator):
    """Gives each row's key to the keyed backend before the function sees the row."""

    def bind_state(self) -> None:
        self.keyed_state = self.environment.keyed()
        self.key_context = self.keyed_state.context
        codec = KeyCodec.for_type(self.spec.key_type)
        self._trivial_identity, self._identity = codec.trivial_identity, codec.identity
        super().bind_state()

    def begin_batch(self, rows: int) -> None:
        self.keyed_state.begin_batch(rows)

    def leave_row(self) -> None:
        # The key of the last row would be taken for the current one.
        self.key_context.clear()

    def pieces(self, batch: Batch) -> Iterator[tuple[list[Any], list[Hashable], Batch]]:
        """A batch as the loops below take it: a few thousand rows at a time, with their ``keys_of``, which the state is
        told before.
        """
        for piece in batch.pieces(ROWS_AT_ONCE):
            try:
                keys, identities = self.keys_of(piece)
                _ = piece.values
            except BaseException as error:
                # No row is at hand yet, and the last one of the piece before is not to blame.
                raise self.failure(error, f"one of {len(piece)} rows of a batch") from error
            self.keyed_state.expect(identities, keys)
            yield keys, identities, piece

    def keys_of(self, batch: Batch) -> tuple[list[Any], list[Hashable]]:
        """The rows' keys, and what caches know them by."""
        keys = batch.keys
        assert keys is not None, "the rows of a keyed operator come with their keys"
        return keys, self.identities_of(keys)

    def identities_of(self, keys: list[Any]) -> list[Hashable]:
        """What caches know keys by."""
        return keys if self._trivial_identity else list(map(self._identity, keys))

    def for_each_row(self, batch: Batch, function: Callable[[Any], Any]) -> tuple[list[Any], list[int] | None]:
        """All results of ``function`` in order, and how many came of each row where times must follow them."""
        out: list[Any] = []
        counts: list[int] | None = [] if batch.times is not None else None
        context, extend, function = self.key_context, out.extend, self.yielding(function)
        key = value = None
        try:
            for keys, identities, piece in self.pieces(batch):
                rows = zip(keys, identities, piece.values, strict=True)
                if counts is None:
                    for key, context.identity, value in rows:
                        context.key = key
                        result = function(value)
                        if result is not None:
                            extend(result)
                else:
                    for key, context.identity, value in rows:
                        context.key = key
                        before = len(out)
                        result = function(value)
                        if result is not None:
                            extend(result)
                        counts.append(len(out) - before)
        except BaseException as error:
            raise self.failure(error, value, key) from error
        return out, counts


class KeyedMapOperator(KeyedOperator, RowMapper):
    def process(self, batch: Batch, input_index: int) -> None:
        function = self.returning(self.row_function(input_index))
        out: list[Any] = []
        append, context = out.append, self.key_context
        key = value = None
        try:
            for keys, identities, piece in self.pieces(batch):
                for key, context.identity, value in zip(keys, identities, piece.values, strict=True):
                    context.key = key
                    append(function(value))
        except BaseException as error:
            raise self.failure(error, value, key) from error
        self.output.collect(self.mapped(batch, out))


class KeyedFlatMapOperator(KeyedOperator):
    yields_rows = True
    row_method = "flat_map"

    def process(self, batch: Batch, input_index: int) -> None:
        self.output.collect(repeat_times(batch, *self.for_each_row(batch, self.row_function(input_index))))


class KeyedFilterOperator(KeyedOperator):
    passes_rows = True
    row_method = "filter"

    def process(self, batch: Batch, input_index: int) -> None:
        function = self.row_function(input_index)
        context = self.key_context
        selected: list[Batch] = []
        key = value = None
        try:
            for keys, identities, piece in self.pieces(batch):
                kept: list[int] = []
                rows = zip(keys, identities, piece.values, strict=True)
                for index, (key, context.identity, value) in enumerate(rows):
                    context.key = key
                    if function(value):
                        kept.append(index)
                selected.append(select_rows(piece, kept))
        except BaseException as error:
            raise self.failure(error, value, key) from error
        for rows_kept in selected:
            self.output.collect(rows_kept)


class ReduceOperator(KeyedOperator):
    """Keeps one value per key and emits it after each row; in a batch at the end of the input, once."""

    row_method = "reduce"

    def bind_state(self) -> None:
        super().bind_state()
        self._descriptor = ValueStateDescriptor("_reduce", self.spec.output_type)
        self._state = self.keyed_state.state(self._descriptor)

    def process(self, batch: Batch, input_index: int) -> None:
        reduce = self.row_function(input_index)
        state, context = self._state, self.key_context
        out: list[Any] = []
        key = value = None
        try:
            for keys, identities, piece in self.pieces(batch):
                for key, context.identity, value in zip(keys, identities, piece.values, strict=True):
                    context.key = key
                    before = state.value()
                    after = value if before is None else reduce(before, value)
                    state.update(after)
                    out.append(after)
        except BaseException as error:
            raise self.failure(error, value, key) from error
        if not self.spec.batch:
            self.output.collect(Batch(out, batch.times, batch.marks))

    def finish(self) -> None:
        if self.spec.batch:
            self._emit_last_values()
        super().finish()

    def _emit_last_values(self) -> None:
        values: list[Any] = []

        def add(key: Any, state: Any) -> None:
            values.append(state.value())
            if len(values) == ROWS_AT_ONCE:
                self.emit_untimed(values)
                values.clear()

        self.keyed_state.apply_to_all_keys(self._descriptor, add)
        self.emit_untimed(values)


class KeyedProcessContext(RowContext):
    """The context of ``process_element`` and ``on_timer`` of keyed process functions."""

    def __init__(self, timer_service: TimerService, key_context: Any) -> None:
        RowContext.__init__(self)
        self._timer_service = timer_service
        self._key_context = key_context
        self.current_domain: TimeDomain | None = None

    def get_current_key(self) -> Any:
        return self._key_context.key

    def timer_service(self) -> TimerService:
        return self._timer_service

    def time_domain(self) -> TimeDomain | None:
        """The domain of the timer that fires; None in ``process_element``."""
        return self.current_domain


class TimedOperator(KeyedOperator):
    """Has timers of its keys. What rows and timers make is handed on in one order, with its times."""

    yields_rows = True

    def __init__(self, spec: OperatorSpec) -> None:
        super().__init__(spec)
        self._out: list[Any] = []
        self._out_times: list[int | None] = []
        self._out_watermarks: list[int] = []

    def bind_state(self) -> None:
        super().bind_state()
        self._event_timers = self.timers(TimeDomain.EVENT_TIME)
        self._processing_timers = self.timers(TimeDomain.PROCESSING_TIME)

    def timers(self, domain: TimeDomain) -> TimerQueue:
        """The timers of a domain."""
        return self.timer_manager.queue("user", domain)

    @property
    def timer_manager(self) -> InternalTimeServiceManager:
        timers = self.environment.state.timers
        assert timers is not None, "a keyed operator has timers"
        return timers

    def on_timer(self, timestamp: int, namespace: Any, domain: TimeDomain) -> None:
        """A timer of the current key is due; its results are emitted."""
        raise NotImplementedError

    def process_watermark(self, watermark: int) -> None:
        if watermark > self.watermark:
            self.advance(watermark)
            self.flush()
            self.output.emit_watermark(watermark)

    def fire_processing_timers(self, now: int) -> None:
        self.fire_due(self._processing_timers, now, TimeDomain.PROCESSING_TIME)
        self.flush()

    def next_processing_timer(self) -> int | None:
        return self._processing_timers.next_timestamp()

    def advance(self, watermark: int) -> None:
        """Event time goes on: timers fire."""
        # The watermark is set before timers fire: a timer may ask for it. What they emit goes ahead of it: downstream
        # it would be late, had another channel come as far already.
        before, first = self.watermark, len(self._out)
        self.watermark = watermark
        self.fire_due(self._event_timers, watermark, TimeDomain.EVENT_TIME)
        self._out_watermarks[first:] = [before] * (len(self._out) - first)

    def fire_due(self, timers: TimerQueue, to: int, domain: TimeDomain) -> None:
        """Fire the timers of a domain that are due at a time."""
        self.fire_timers(timers.advance(to), domain, self.on_timer)

    def fire_timers(self, due: Iterable[tuple[int, Any, Any]], domain: TimeDomain, on_timer: OnTimer) -> None:
        """Call ``on_timer`` for timers, each with its key as the current one."""
        context = self.key_context
        for timestamp, key, namespace in due:
            context.key, context.identity = key, self._identity(key)
            try:
                on_timer(timestamp, namespace, domain)
            except BaseException as error:
                raise self.failure(error, f"timer at {timestamp}", key) from error

    def emit(self, results: Iterable[Any] | None, timestamp: int | None) -> None:
        """Hand rows on, in their turn."""
        if results is None:
            return
        before = len(self._out)
        self._out.extend(self.yielded(results))
        emitted = len(self._out) - before
        self._out_times.extend([timestamp] * emitted)
        self._out_watermarks.extend([self.watermark] * emitted)

    def emit_all(self, rows: list[Any], timestamp: int | None) -> None:
        """As ``emit``, for rows that stay as they are."""
        self._out += rows
        self._out_times.extend([timestamp] * len(rows))
        self._out_watermarks.extend([self.watermark] * len(rows))

    @property
    def emitted(self) -> int:
        """Rows that wait for their turn."""
        return len(self._out)

    def flush(self, watermark: int | None = None) -> None:
        """Hand on what was emitted. ``watermark``: in the place of those that were in force then."""
        if not self._out:
            return
        out, times, watermarks = self._out, self._out_times, self._out_watermarks
        self._out, self._out_times, self._out_watermarks = [], [], []
        if watermark is not None:
            watermarks = [watermark] * len(out)
        self.output.collect(Batch(out, times, watermarks) if self.spec.event_time else Batch(out))


class ProcessHosting:
    """What kinds of keyed process functions differ in: their methods, and what these are given."""

    def row_function(self, function: Any, input_index: int) -> Callable[..., Any]:
        """What the rows of an input are given to, each with the context."""
        return method_of(function, "process_element")

    def context(self, operator: KeyedProcessOperator, timers: TimerService) -> KeyedProcessContext:
        """What comes with rows and timers."""
        return KeyedProcessContext(timers, operator.key_context)

    def initialization_context(self, environment: OperatorEnvironment) -> FunctionInitializationContext:
        return FunctionInitializationContext(environment)

    def snapshot_context(self, context: StateSnapshotContext) -> FunctionSnapshotContext:
        return context.for_function()

    def process(self, operator: KeyedProcessOperator, batch: Batch, input_index: int) -> None:
        operator.process_rows(batch, self.row_function(operator.function, input_index))


class KeyedProcessOperator(TimedOperator):
    """A keyed process function with its event and processing time timers."""

    def __init__(self, spec: OperatorSpec, hosting: ProcessHosting | None = None) -> None:
        super().__init__(spec)
        self._hosting = hosting or ProcessHosting()

    def bind_state(self) -> None:
        super().bind_state()
        service_type = BatchTimerService if self.spec.batch else TimerService
        timers = service_type(self, self._event_timers, self._processing_timers)
        self._context = self._hosting.context(self, timers)

    def initialization_context(self) -> FunctionInitializationContext:
        return self._hosting.initialization_context(self.environment)

    def snapshot_context(self, context: StateSnapshotContext) -> FunctionSnapshotContext:
        return self._hosting.snapshot_context(context)

    def process(self, batch: Batch, input_index: int) -> None:
        self._hosting.process(self, batch, input_index)

    def process_rows(self, batch: Batch, function: Callable[..., Any]) -> None:
        """Call ``function(row, context)`` for every row of a key."""
        context = self._context
        if batch.timestamps is None:
            context.current_timestamp = None
            out, counts = self.for_each_row(batch, lambda value: function(value, context))
            self.output.collect(repeat_times(batch, out, counts))
            return
        self._process_timed(batch, function)

    def _process_timed(self, batch: Batch, function: Callable[..., Any]) -> None:
        context, key_context = self._context, self.key_context
        assert batch.timestamps is not None and batch.watermarks is not None
        key = value = None
        try:
            for keys, identities, piece in self.pieces(batch):
                # Both are there in a piece of a batch that has them.
                times: Any = piece.timestamps, piece.watermarks
                rows: Any = zip(keys, identities, piece.values, *times, strict=True)
                for key, identity, value, timestamp, watermark in rows:
                    if watermark > self.watermark:
                        self.advance(watermark)
                    key_context.key, key_context.identity = key, identity
                    context.current_timestamp = timestamp
                    self.emit(function(value, context), timestamp)
        except BaseException as error:
            raise self.failure(error, value, key) from error
        self.flush()

    def on_timer(self, timestamp: int, namespace: Any, domain: TimeDomain) -> None:
        on_timer = getattr(self.function, "on_timer", None)
        if on_timer is None:
            return
        context = self._context
        context.current_domain, context.current_timestamp = domain, timestamp
        try:
            self.emit(on_timer(timestamp, context), timestamp)
        finally:
            context.current_domain = None
