"""Known aggregates of windows, a row at a time: for every assigner, trigger and evictor. Where columns do the same
faster, they give what is given here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import pyarrow as pa

from holdfast.errors import FunctionError
from holdfast.runtime.aggregates import LIMIT, Aggregation, Partial, too_large
from holdfast.runtime.windowing.contexts import WindowContext
from holdfast.runtime.windowing.functions import WindowProcess
from holdfast.types.arrow import schema_of
from holdfast.types.row import Row
from holdfast.types.typeinfo import FieldsTypeInfo, RowTypeInfo, Types

#: The columns of a window's times.
WINDOW_COLUMNS = ("window_start", "window_end")

#: Of what is kept, None for nothing, and a value, null or not, to what is kept then.
Step = Callable[[Any, Any], Any]


def _count(kept: int, value: Any) -> int:
    return kept + 1


def _count_values(kept: int, value: Any) -> int:
    return kept if value is None else kept + 1


def _add(kept: Any, value: Any) -> Any:
    if value is None or kept is None:
        return kept if value is None else value
    return kept + value


def _add_within(field: str, kept: int | None, value: int | None) -> int | None:
    total: int | None = _add(kept, value)
    if total is not None and not -LIMIT <= total < LIMIT:
        raise FunctionError(too_large(field))
    return total


def _best(better: Callable[[Any, Any], Any], kept: Any, value: Any) -> Any:
    """NaN is passed over where there is another number."""
    if value is None or kept is None:
        return kept if value is None else value
    if value != value or kept != kept:
        return kept if value != value else value
    return better(kept, value)


def _best_real(better: Callable[[Any, Any], Any], kept: Any, value: Any) -> Any:
    """Zero has no sign: 0.0 and -0.0 are equal, and either could be the best of them."""
    best = _best(better, kept, value)
    return None if best is None else best + 0.0


def _step(function: str, kept: Partial) -> Step:
    whole = kept.type_info.number is int
    if function == "sum":
        return partial(_add_within, kept.summed) if whole else _add
    best = _best if whole else _best_real
    steps: dict[str, Step] = {
        "count_all": _count,
        "count": _count_values,
        "min": partial(best, min),
        "max": partial(best, max),
    }
    return steps[function]


def _no_field(row: Any) -> None:
    return None


class KnownAggregates:
    """An aggregate function: its accumulators are tuples of partial values, which are never changed in place.
    ``combined``: its rows stand for several, and are accumulators themselves.
    """

    def __init__(self, aggregation: Aggregation, combined: bool = False) -> None:
        partials = aggregation.partials
        row_type: FieldsTypeInfo = aggregation.combined_type() if combined else aggregation.row_type
        taken = [one.of_combined if combined else one for one in partials]
        self._start = tuple(0 if one.function in ("count", "count_all") else None for one in partials)
        self._steps = [
            (_no_field if one.field is None else row_type.getter(one.field), _step(one.function, kept))
            for one, kept in zip(taken, partials, strict=True)
        ]
        self._merges = [_step(one.merge, one) for one in partials]
        fields = aggregation.fields
        self._results = [
            (aggregate, [partials.index(one) for one in aggregate.partials(fields)])
            for _, aggregate in aggregation.aggregates
        ]

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
    #: The rows that come stand for several.
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
