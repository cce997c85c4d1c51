"""Known aggregates of windows, a row at a time: for every assigner, trigger and evictor. Where columns do the same
faster, they give what is given here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from holdfast.runtime.aggregates import Aggregation
from holdfast.runtime.partial_aggregates import Partial
from holdfast.runtime.windowing.contexts import WindowContext
from holdfast.runtime.windowing.functions import WindowProcess
from holdfast.types.arrow import schema_of
from holdfast.types.row import Row
from holdfast.types.typeinfo import FieldsTypeInfo, RowTypeInfo, Types

#: The columns of a window's times.
WINDOW_COLUMNS = ("window_start", "window_end")


def _is_there(row: Any) -> bool:
    """What counts of a row as such."""
    return True


def _with_time(one: Partial, get: Callable[[Any], Any]) -> Callable[[tuple[Any, int | None]], tuple[int, Any]]:
    """Gives the time and the value of rows that come with their times."""

    def timed(row: tuple[Any, int | None]) -> tuple[int, Any]:
        value, time = row
        if time is None:
            raise one.no_time()
        return time, get(value)

    return timed


def _of_row(get: Callable[[Any], Any]) -> Callable[[tuple[Any, int | None]], Any]:
    return lambda row: get(row[0])


class KnownAggregates:
    """An aggregate function: its accumulators are tuples of partial values, which are never changed in place.
    ``combined``: its rows are partial aggregates, accumulators themselves. Where ``timed``, rows come as pairs with
    their event times.
    """

    def __init__(self, aggregation: Aggregation, combined: bool = False) -> None:
        partials = aggregation.partials
        row_type: FieldsTypeInfo = aggregation.combined_type() if combined else aggregation.row_type
        taken = [one.of_combined if combined else one for one in partials]
        self.timed = any(one.timed for one in taken)
        self._start = tuple(one.function.empty for one in partials)
        self._steps = [(self._getter(one, row_type), one.step()) for one in taken]
        self._merges = [one.merge() for one in partials]
        fields = aggregation.fields
        self._results = [
            (aggregate, [partials.index(one) for one in aggregate.partials(fields)])
            for _, aggregate in aggregation.aggregates
        ]

    def _getter(self, one: Partial, row_type: FieldsTypeInfo) -> Callable[[Any], Any]:
        get = _is_there if one.column is None else row_type.getter(one.column)
        if not self.timed:
            return get
        return _with_time(one, get) if one.timed else _of_row(get)

    def create_accumulator(self) -> tuple[Any, ...]:
        return self._start

    def add(self, value: Any, accumulator: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple([step(kept, get(value)) for kept, (get, step) in zip(accumulator, self._steps, strict=True)])

    def merge(self, acc_a: tuple[Any, ...], acc_b: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple([step(*pair) for step, *pair in zip(self._merges, acc_a, acc_b, strict=True)])

    def get_result(self, accumulator: tuple[Any, ...]) -> list[Any]:
        return [aggregate.value([accumulator[place] for place in places]) for aggregate, places in self._results]


@dataclass(frozen=True)
class WindowAggregation:
    """Aggregates of the rows of each key in each window, and the rows that are given out for them."""

    aggregation: Aggregation
    #: Windows of time have a start and an end, which the rows begin with behind the key.
    timed: bool
    #: The rows that come are partial aggregates.
    combined: bool = False

    @property
    def taken(self) -> list[Partial]:
        """What each kept column is made of, in the rows that come."""
        return [one.of_combined if self.combined else one for one in self.aggregation.partials]

    def output_type(self) -> RowTypeInfo:
        keys, fields = self.aggregation.key_columns, self.aggregation.fields
        windows = WINDOW_COLUMNS if self.timed else ()
        names = [*keys, *windows, *(name for name, _ in self.aggregation.aggregates)]
        results = [aggregate.result_type(fields) for _, aggregate in self.aggregation.aggregates]
        types = [*(fields[name] for name in keys), *(Types.LONG() for _ in windows), *results]
        row_type = Types.ROW_NAMED(names, types)
        assert isinstance(row_type, RowTypeInfo)
        return row_type

    def results(self, keys: pa.Array, window: Any, kept: Sequence[pa.Array]) -> pa.RecordBatch:
        """The rows of keys in a window, of the partial columns that are kept for them."""
        key_columns = keys.flatten() if len(self.aggregation.key_columns) > 1 else [keys]
        columns = key_columns if self.aggregation.key_columns else []
        if self.timed:
            columns = [*columns, *(pa.repeat(pa.scalar(time, pa.int64()), len(keys)) for time in window)]
        columns = [*columns, *self.aggregation.result_columns(kept)]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    @cached_property
    def _schema(self) -> pa.Schema:
        return schema_of(self.output_type())


class GiveRow(WindowProcess):
    """The row of a key and a window."""

    def __init__(self, known: WindowAggregation) -> None:
        self.known = known
        self._names = known.output_type().field_names

    def process(self, key: Any, context: WindowContext[Any], elements: list[Any]) -> Iterable[Any] | None:
        columns = self.known.aggregation.key_columns
        keys = key if len(columns) > 1 else (key,) if columns else ()
        window = context.window() if self.known.timed else ()
        make = Row.factory(self._names)
        return [make((*keys, *window, *results)) for results in elements]
