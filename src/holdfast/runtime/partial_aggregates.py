"""The table of partial aggregates: what is kept of the values of a field, and how, in every form that computes it.

A row of the table says what is done value by value. How columns do the same, and Spark's SQL, stands beside it where
there is such a form, and gives the same; without one, the values of a column are taken one by one. A null is no value.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property, partial
from operator import add
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.errors import ProgramError
from holdfast.runtime import partial_extremes as extremes
from holdfast.runtime import partial_moments as moments
from holdfast.runtime.event_times import Numbers
from holdfast.runtime.overflow import checked_sum
from holdfast.runtime.partial_columns import ArrowColumn, MergedColumn, looped_column
from holdfast.types.typeinfo import TypeInformation

#: Of what is kept, None for nothing, and a value, null or not, to what is kept then.
Step = Callable[[Any, Any], Any]


class Overflow(Enum):
    """Where integers are added, whose sum must be one of 64 bits."""

    NEVER = "never"
    #: Rows are counted, and counts are added.
    MERGED = "merged"
    ALWAYS = "always"


class Sql(NamedTuple):
    """Spark's aggregate function of rows, whose intermediate result is one column; ``{value}`` is the field."""

    text: str
    #: The result has the other sign.
    negated: bool = False


@dataclass(frozen=True)
class PartialFunction:
    """One row of the table. Functions of one name and one type are the same: both are in stored state."""

    name: str
    #: A value comes to what is kept; where ``timed``, a pair of its event time and the value.
    step: Step = field(compare=False)
    #: What is kept of some rows, and of others that came later.
    merge: Step = field(compare=False)
    #: What is kept of no values.
    empty: Any = field(default=None, compare=False)
    #: What PyFlink's short forms (``keyed.min(1)``) make of what they kept and a value, neither of them null. It is the
    #: step, but that it knows no numbers: beside NaN, and of two zeros, what came first stays, as in PyFlink.
    of_two: Step | None = field(default=None, compare=False)
    overflow: Overflow = field(default=Overflow.NEVER, compare=False)
    #: The result is the same, to the last bit, in whatever order values come: rows of windows may be combined then.
    order_free: bool = field(default=False, compare=False)
    #: The event time of a value counts.
    timed: bool = field(default=False, compare=False)
    #: How columns do it; None for a loop.
    by_column: ArrowColumn | MergedColumn | None = field(default=None, compare=False)
    #: How Spark does it; None where it cannot, and Arrow does it in Spark's tasks.
    sql: Sql | None = field(default=None, compare=False)

    @cached_property
    def columns(self) -> ArrowColumn | MergedColumn:
        return self.by_column or looped_column(self.step, self.merge, self.empty)


@dataclass(frozen=True, slots=True)
class Partial:
    """One column that is kept: what a row of the table keeps of a field, or of rows as such."""

    function: PartialFunction
    field: str | None
    type_info: TypeInformation
    #: It is computed of rows that have partial aggregates already, in a column of its own name.
    combined: bool = False
    #: The type of the field, which rows say.
    value_type: TypeInformation | None = dataclasses.field(default=None, compare=False)

    @property
    def name(self) -> str:
        """What it is, in stored state too."""
        return f"{self.function.name}({'*' if self.field is None else self.field})"

    @property
    def column(self) -> str | None:
        """The column of the rows that it is computed of; None for rows as such."""
        return self.name if self.combined else self.field

    @property
    def of_combined(self) -> Partial:
        """This partial aggregate, computed of partially aggregated rows."""
        return replace(self, combined=True)

    @property
    def summed(self) -> str:
        """What a sum is of, in errors."""
        return self.field or "the number of rows"

    @property
    def timed(self) -> bool:
        """Whether it needs the event times of rows."""
        return self.function.timed and not self.combined

    @property
    def overflows(self) -> bool:
        """Whether it adds integers of 64 bits."""
        overflow = self.function.overflow
        return overflow is Overflow.ALWAYS or (self.combined and overflow is Overflow.MERGED)

    @property
    def by_column(self) -> bool:
        """Whether columns fold values into what is kept as a loop does, to the last bit."""
        return isinstance(self.function.columns, ArrowColumn) or self.function.order_free

    @property
    def hashed(self) -> str | None:
        """Arrow's aggregate function that groups its column; None where one of ours does."""
        columns = self.function.columns
        if isinstance(columns, MergedColumn):
            return None
        return columns.of_partials if self.combined else columns.of_rows

    def step(self) -> Step:
        """What a loop does with the value of a row."""
        if self.combined:
            return self.merge()
        return partial(checked_sum, self.summed) if self.overflows else self.function.step

    def merge(self) -> Step:
        """What a loop does with what was kept of some rows and of others."""
        adds = self.function.overflow is not Overflow.NEVER
        return partial(checked_sum, self.summed) if adds else self.function.merge

    def no_time(self) -> ProgramError:
        return ProgramError(
            f"{self.name} needs the event times of rows, and rows without one came. Put "
            "assign_timestamps_and_watermarks(...) before key_by(...)."
        )

    def time_column(self, times: Numbers | None) -> pa.Array:
        if times is None:
            raise self.no_time()
        return pa.array(times, pa.int64())


# -- steps


def _count(kept: int, value: Any) -> int:
    return kept + 1


def _count_values(kept: int, value: Any) -> int:
    return kept if value is None else kept + 1


def _add(kept: Any, value: Any) -> Any:
    if value is None or kept is None:
        return kept if value is None else value
    return kept + value


def _best(better: Step, kept: Any, value: Any) -> Any:
    if value is None or kept is None:
        return kept if value is None else value
    return better(kept, value)


def _best_real(better: Step, kept: Any, value: Any) -> Any:
    """NaN is passed over where there is another number. Zero has no sign: either of 0.0 and -0.0 could be the best."""
    if value is None or kept is None:
        best = kept if value is None else value
        return None if best is None else best + 0.0
    if value != value or kept != kept:
        return (kept if value != value else value) + 0.0
    return better(kept, value) + 0.0


def _sum_columns(old: pa.Array, new: pa.Array) -> pa.Array:
    return pc.coalesce(pc.add_checked(old, new), old, new)


# -- the table

_LEAST, _GREATEST = (partial(either, skip_nulls=True) for either in (pc.min_element_wise, pc.max_element_wise))
_INTEGERS = np.iinfo(np.int64)

#: How many rows there were, and how many of them had a value.
COUNT_ALL, COUNT = (
    PartialFunction(
        name,
        step,
        _add,
        empty=0,
        order_free=True,
        overflow=Overflow.MERGED,
        by_column=ArrowColumn(name, "sum", _sum_columns, np.add, 0, counts=True),
        sql=Sql(sql),
    )
    for name, step, sql in (("count_all", _count, "count(1)"), ("count", _count_values, "count({value})"))
)

#: Sums of integers and of floating numbers. NaN and infinities are added as they are. The sign of a zero is open.
WHOLE_SUM = PartialFunction(
    "sum",
    _add,
    _add,
    of_two=add,
    order_free=True,
    overflow=Overflow.ALWAYS,
    by_column=ArrowColumn("sum", "sum", _sum_columns, np.add, 0),
    sql=Sql("sum({value})"),
)
REAL_SUM = PartialFunction(
    "sum",
    _add,
    _add,
    of_two=add,
    # Of zeros, only the negative one leaves a negative zero what it is.
    by_column=ArrowColumn("sum", "sum", _sum_columns, np.add, -0.0),
    sql=Sql("sum({value})"),
)

#: The least and the greatest value. NaN is passed over where there is another number, and a zero is 0.0.
WHOLE_MIN, WHOLE_MAX = (
    PartialFunction(
        name,
        partial(_best, better),
        partial(_best, better),
        of_two=better,
        order_free=True,
        by_column=ArrowColumn(name, name, paired, ufunc, identity),
        sql=Sql(f"{name}({{value}})"),
    )
    for name, better, paired, ufunc, identity in (
        ("min", min, _LEAST, np.minimum, _INTEGERS.max),
        ("max", max, _GREATEST, np.maximum, _INTEGERS.min),
    )
)
REAL_MIN, REAL_MAX = (
    PartialFunction(
        name,
        partial(_best_real, better),
        partial(_best_real, better),
        of_two=better,
        order_free=True,
        by_column=ArrowColumn(name, name, paired, ufunc, np.nan, unsigned_zero=True),
        sql=sql,
    )
    for name, better, paired, ufunc, sql in (
        ("min", min, _LEAST, np.fmin, Sql("min({value})")),
        # To Spark NaN is the greatest number. Where a key has another one it is passed over by Spark's min alone.
        ("max", max, _GREATEST, np.fmax, Sql("min(-{value})", negated=True)),
    )
)

#: Of what a variance is made. NaN and infinities give NaN. Spark keeps three columns, where one is looked for.
MOMENTS = PartialFunction(
    "moments",
    moments.add_moment,
    moments.merge_moments,
    by_column=MergedColumn(moments.moment_of_each, moments.merge_columns_of_moments),
)

#: The value at the least and at the greatest event time, with that time.
EARLIEST, LATEST = (
    PartialFunction(
        name,
        step,
        merge,
        order_free=True,
        timed=True,
        by_column=MergedColumn(extremes.timed_value_of_each, of_groups),
    )
    for name, step, merge, of_groups in (
        ("earliest", extremes.add_earliest, extremes.earlier, extremes.earliest_of_groups),
        ("latest", extremes.add_latest, extremes.later, extremes.latest_of_groups),
    )
)
