"""Operators without keys: map, flat_map, filter, process. Whole batches go through the user's function in one loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.runtime.batch import Batch
from holdfast.runtime.functions import FunctionOperator
from holdfast.runtime.timer_service import ForbiddenTimerService


class RowMapper(FunctionOperator):
    """What operators that give one result for each row share."""

    row_method = "map"

    def mapped(self, batch: Batch, results: list[Any]) -> Batch:
        """The results with the times of their rows."""
        return Batch(results, batch.times, batch.marks)


class MapOperator(RowMapper):
    """One row for each row, with its timestamp."""

    def process(self, batch: Batch, input_index: int) -> None:
        function = self.returning(self.row_function(input_index))
        value: Any = None
        out: list[Any] = []
        append = out.append
        try:
            for value in batch.values:
                append(function(value))
        except BaseException as error:
            raise self.failure(error, value) from error
        self.output.collect(self.mapped(batch, out))


class FilterOperator(FunctionOperator):
    """Keeps the rows for which the function is true."""

    passes_rows = True
    row_method = "filter"

    def process(self, batch: Batch, input_index: int) -> None:
        function = self.row_function(input_index)
        value: Any = None
        kept: list[int] = []
        values = batch.values
        try:
            for index, value in enumerate(values):
                if function(value):
                    kept.append(index)
        except BaseException as error:
            raise self.failure(error, value) from error
        self.output.collect(select_rows(batch, kept))


def select_rows(batch: Batch, kept: list[int]) -> Batch:
    """The rows at the given positions, with what travels beside them."""
    if len(kept) == len(batch):
        return batch
    values = batch.values
    return batch.at(kept, [values[i] for i in kept])


class FlatMapOperator(FunctionOperator):
    """Any number of rows for each row, with its timestamp."""

    yields_rows = True
    row_method = "flat_map"

    def process(self, batch: Batch, input_index: int) -> None:
        function = self.yielding(self.row_function(input_index))
        value: Any = None
        out: list[Any] = []
        counts: list[int] | None = [] if batch.times is not None else None
        try:
            for value in batch.values:
                before = len(out)
                result = function(value)
                if result is not None:
                    out.extend(result)
                if counts is not None:
                    counts.append(len(out) - before)
        except BaseException as error:
            raise self.failure(error, value) from error
        self.output.collect(repeat_times(batch, out, counts))


def repeat_times(batch: Batch, out: list[Any], counts: list[int] | None) -> Batch:
    """``out`` with the times of the rows it came from, ``counts[i]`` rows from row i."""
    if counts is None:
        return Batch(out)
    assert batch.timestamps is not None and batch.watermarks is not None
    timestamps = [t for t, n in zip(batch.timestamps, counts, strict=True) for _ in range(n)]
    watermarks = [w for w, n in zip(batch.watermarks, counts, strict=True) for _ in range(n)]
    return Batch(out, timestamps, watermarks)


class RowContext:
    """What every context knows of the row at hand; operators set it per row."""

    def __init__(self) -> None:
        self.current_timestamp: int | None = None

    def timestamp(self) -> int:
        """The row's event time in milliseconds; None on a stream without timestamps. Declared as in PyFlink: programs
        that set timers by it are on streams that have them."""
        return self.current_timestamp  # type: ignore[return-value]  # as PyFlink declares it


class ProcessContext(RowContext):
    """The context of ``ProcessFunction.process_element``."""

    def __init__(self, operator: ProcessOperator) -> None:
        super().__init__()
        self._timer_service = ForbiddenTimerService(operator)

    def timer_service(self) -> ForbiddenTimerService:
        return self._timer_service


class ProcessOperator(FunctionOperator):
    """A process function on a stream without keys: times can be read, timers cannot be set."""

    yields_rows = True
    row_method = "process_element"

    def bind_state(self) -> None:
        super().bind_state()
        self._context = ProcessContext(self)

    def process(self, batch: Batch, input_index: int) -> None:
        self.process_rows(batch, self.row_function(input_index), self._context)

    def process_rows(self, batch: Batch, function: Callable[..., Any], context: RowContext) -> None:
        """Call ``function(row, context)`` for every row, and hand its results on with the times of their rows."""
        function = self.yielding(function)
        value: Any = None
        out: list[Any] = []
        times = batch.timestamps
        counts: list[int] | None = [] if times is not None else None
        try:
            for index, value in enumerate(batch.values):
                before = len(out)
                if times is not None and batch.watermarks is not None:
                    context.current_timestamp = times[index]
                    self.watermark = max(self.watermark, batch.watermarks[index])
                result = function(value, context)
                if result is not None:
                    out.extend(result)
                if counts is not None:
                    counts.append(len(out) - before)
        except BaseException as error:
            raise self.failure(error, value) from error
        self.output.collect(repeat_times(batch, out, counts))
