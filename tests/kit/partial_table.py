"""The table of partial aggregates for tests: all that a program can ask for, values of every kind, and the loop over
rows that every other form is compared with.
"""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from holdfast.common import Row, Types
from holdfast.datastream import aggregates
from holdfast.errors import ProgramError
from holdfast.runtime import partial_aggregates
from holdfast.runtime.aggregates import Aggregate, Aggregation
from holdfast.runtime.partial_aggregates import Partial, PartialFunction
from holdfast.runtime.windowing.known_aggregates import KnownAggregates
from holdfast.types.arrow import row_writer
from holdfast.types.typeinfo import RowTypeInfo, TupleTypeInfo

FIELDS = ("whole", "real", "text")
ROW = Types.ROW_NAMED(["key", *FIELDS], [Types.STRING(), Types.LONG(), Types.DOUBLE(), Types.STRING()])
assert isinstance(ROW, RowTypeInfo)
LIMIT = 1 << 63

#: Sums of these are exact, in whatever order they are added.
_REALS = st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf]) | st.integers(-(1 << 30), 1 << 30).map(
    lambda number: number / 4
)
_WHOLES = st.sampled_from([LIMIT - 1, -LIMIT, 1 << 62, -(1 << 62), 0]) | st.integers(-9, 9)
#: The time of a row, and the row.
ROWS = st.lists(
    st.tuples(
        st.integers(-3, 3) | st.sampled_from([LIMIT - 1, -LIMIT]),
        st.builds(
            Row, st.sampled_from("abc"), st.none() | _WHOLES, st.none() | _REALS, st.none() | st.sampled_from("xyü")
        ),
    ),
    max_size=30,
)
Rows = list[tuple[int, Row]]


def table() -> list[PartialFunction]:
    """All rows of the table."""
    return [one for one in vars(partial_aggregates).values() if isinstance(one, PartialFunction)]


def all_aggregates() -> dict[str, Aggregate]:
    """Every public aggregate, of every field that it takes."""
    found: dict[str, Aggregate] = {"Count()": aggregates.Count()}
    public = {name: getattr(aggregates, name) for name in aggregates.__all__}
    kinds = {name: one for name, one in public.items() if issubclass(one, Aggregate) and one is not Aggregate}
    for name, kind in kinds.items():
        for field in FIELDS:
            aggregate = kind(field)
            try:
                aggregation_of(aggregate).state_type()
            except ProgramError:
                continue
            found[f"{name}({field})"] = aggregate
    return found


def aggregation_of(*wanted: Aggregate) -> Aggregation:
    assert isinstance(ROW, RowTypeInfo)
    return Aggregation(ROW, ("key",), tuple((f"result{place}", one) for place, one in enumerate(wanted)))


def looped(aggregation: Aggregation, rows: Rows) -> dict[str, tuple[Any, ...]]:
    """What a loop keeps of each key."""
    function, kept = KnownAggregates(aggregation), dict[str, tuple[Any, ...]]()
    for time, row in rows:
        before = kept.get(row[0], function.create_accumulator())
        kept[row[0]] = function.add((row, time) if function.timed else row, before)
    return kept


def columns_of(rows: Rows) -> pa.RecordBatch:
    return row_writer(ROW)([row for _, row in rows])


def same(partial: Partial, found: dict[str, Any], expected: dict[str, Any], rows: Rows) -> bool:
    """Whether the same is kept of each key. Of what depends on the order of rows, the sign of a zero is open, and of
    several numbers the last digits, and which of those that are not finite they are.
    """
    if partial.function.order_free:
        return _texts(found) == _texts(expected)
    if found.keys() != expected.keys() or not isinstance(partial.type_info, TupleTypeInfo):
        return _texts(found, 0.0) == _texts(expected, 0.0)
    values = [row[1 + FIELDS.index(str(partial.field))] for _, row in rows]
    scale = max((abs(value) for value in values if value is not None and math.isfinite(value)), default=0)
    return all(_close(found[key], expected[key], scale) for key in expected)


def _texts(kept: dict[str, Any], zero: float | None = None) -> dict[str, str]:
    return {key: repr(one + zero if zero is not None and isinstance(one, float) else one) for key, one in kept.items()}


def _close(one: tuple[float, ...] | None, other: tuple[float, ...] | None, scale: float) -> bool:
    if one is None or other is None:
        return one is other
    if not all(map(math.isfinite, (*one, *other))):
        return not all(map(math.isfinite, one)) and not all(map(math.isfinite, other))
    slack = (0, 1e-9 * scale, 1e-9 * scale**2)
    return all(math.isclose(a, b, rel_tol=1e-9, abs_tol=c) for a, b, c in zip(one, other, slack, strict=True))
