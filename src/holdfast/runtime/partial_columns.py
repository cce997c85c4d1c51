"""How partial aggregates are computed by column: of rows, of partial aggregates, and into what is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.errors import FunctionError
from holdfast.runtime.event_times import Numbers
from holdfast.runtime.overflow import cannot_overflow, too_large
from holdfast.types.columns import Column
from holdfast.types.typeinfo import TypeInformation

if TYPE_CHECKING:
    from holdfast.runtime.partial_aggregates import Partial


@dataclass(frozen=True)
class Values:
    """A field of some rows: its numbers, None for a field of others; and where there are values, None for everywhere.
    """

    column: pa.Array
    rows: Numbers
    #: The event times of the batch, None where a row has none.
    times: Numbers | None
    numbers: npt.NDArray[Any] | None
    there: npt.NDArray[np.bool_] | None

    @classmethod
    def of(cls, column: pa.Array, rows: Numbers, times: Numbers | None = None) -> Values:
        """The values of ``rows``."""
        there = column.is_valid().to_numpy(zero_copy_only=False)[rows] if column.null_count else None
        if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            return cls(column, rows, times, None, there)
        wide = column.cast(pa.int64() if pa.types.is_integer(column.type) else pa.float64())
        numbers = (pc.fill_null(wide, 0) if wide.null_count else wide).to_numpy()[rows]
        return cls(column, rows, times, numbers, there)


@dataclass(frozen=True)
class ArrowColumn:
    """One number for each key: Arrow groups it, and numpy folds it into what is kept."""

    #: Arrow's aggregate functions of rows, and of partial aggregates.
    of_rows: str
    of_partials: str
    #: Arrow's function of two columns, of which either may be null.
    paired: Callable[[pa.Array, pa.Array], pa.Array]
    #: Puts two numbers together, and the number that changes none that it is put together with.
    ufunc: np.ufunc
    identity: Any
    #: 0.0 and -0.0 are one number, and its sign is not to depend on which came first.
    unsigned_zero: bool = False
    #: Rows are counted, whatever their values are.
    counts: bool = False

    def of_each(self, partial: Partial, values: pa.Array | None, rows: int, times: Numbers | None) -> pa.Array:
        """The partial aggregate of each row by itself."""
        if values is None:
            return pa.repeat(1, rows)
        return values.is_valid() if self.counts else values

    def grouped(self, column: pa.Array) -> pa.Array:
        """What Arrow has grouped, as it is kept."""
        return pc.add(column, pa.scalar(0.0, column.type)) if self.unsigned_zero else column

    def merged(self, partial: Partial, old: pa.Array, new: pa.Array) -> pa.Array:
        try:
            return self.paired(old, new)
        except pa.ArrowInvalid as error:
            raise FunctionError(too_large(partial.summed)) from error

    def folded(
        self, partial: Partial, kept: Sequence[Any], members: Numbers, column: Values | None
    ) -> list[Any] | None:
        """What is kept of each group, to the last bit as in a loop: values go into it in their order."""
        there = slice(None) if column is None or column.there is None else column.there
        members = members[there]
        if self.counts and not partial.combined:
            counts = np.array([value or 0 for value in kept], dtype=np.int64)
            return (counts + np.bincount(members, minlength=len(kept))).tolist()  # type: ignore[no-any-return]  # numpy
        assert column is not None and column.numbers is not None, "all but a count is of numbers"
        values = column.numbers[there]
        folded = np.array([self.identity if value is None else value for value in kept], dtype=values.dtype)
        if partial.overflows and not cannot_overflow(values, folded):
            return None
        # Infinities give what they give in a loop, without a warning.
        with np.errstate(over="ignore", invalid="ignore"):
            self.ufunc.at(folded, members, values)
        if self.unsigned_zero:
            folded += 0.0
        results: list[Any] = folded.tolist()
        if None in kept:
            came = np.bincount(members, minlength=len(kept))
            for group in np.flatnonzero(came == 0).tolist():
                if kept[group] is None:
                    results[group] = None
        return results


@dataclass(frozen=True)
class MergedColumn:
    """Anything else, several numbers that are merged together among it: a function of the whole column merges those of
    each group.
    """

    #: The partial aggregate of each value by itself, null where there is none: (values, their times, itself).
    each: Callable[[pa.Array, pa.Array | None, Partial], pa.Array]
    #: The partial aggregates of each group as one, in their order: (column, the group of each, how many groups there
    #: are, its type).
    merge: Callable[[pa.Array, Numbers, int, TypeInformation], pa.Array]

    def of_each(self, partial: Partial, values: pa.Array | None, rows: int, times: Numbers | None) -> pa.Array:
        """The partial aggregate of each row by itself."""
        given = pa.repeat(True, rows) if values is None else values
        when = partial.time_column(times) if partial.timed else None
        return self.each(given, when, partial)

    def grouped(self, partial: Partial, column: pa.Array, members: Numbers, groups: int) -> pa.Array:
        """What is kept of each group, of partial aggregates."""
        return self.merge(column, members, groups, partial.type_info)

    def merged(self, partial: Partial, old: pa.Array, new: pa.Array) -> pa.Array:
        numbers = np.arange(len(old))
        return self.grouped(partial, pa.concat_arrays([old, new]), np.append(numbers, numbers), len(old))

    def folded(
        self, partial: Partial, kept: Sequence[Any], members: Numbers, column: Values | None
    ) -> list[Any] | None:
        """What is kept of each group. None, a loop has to do it, where the last bits depend on the order."""
        if not partial.function.order_free:
            return None
        stored = Column(partial.type_info, partial.name)
        new = self._new(partial, members, column)
        both = pa.concat_arrays([stored.write(kept), new.cast(stored.arrow_type)])
        groups = np.append(np.arange(len(kept)), members)
        return stored.read(self.grouped(partial, both, groups, len(kept)))

    def _new(self, partial: Partial, members: Numbers, column: Values | None) -> pa.Array:
        if column is None:
            return self.of_each(partial, None, len(members), None)
        values = column.column.take(pa.array(column.rows))
        if partial.combined:
            return values
        times = None if column.times is None else column.times[column.rows]
        return self.of_each(partial, values, len(values), times)


@dataclass(frozen=True)
class Loop:
    """A partial aggregate that is only said of single values."""

    step: Callable[[Any, Any], Any]
    merge: Callable[[Any, Any], Any]
    empty: Any

    def each(self, values: pa.Array, times: pa.Array | None, partial: Partial) -> pa.Array:
        of_type = partial.value_type
        # Arrow has other values than rows for some types.
        plain = values.to_pylist() if of_type is None else Column(of_type, partial.summed).read(values)
        given = plain if times is None else zip(times.to_pylist(), plain, strict=True)
        return Column(partial.type_info, partial.name).write([self.step(self.empty, value) for value in given])

    def merged(self, column: pa.Array, members: Numbers, groups: int, type_info: TypeInformation) -> pa.Array:
        stored, kept = Column(type_info, "a partial aggregate"), [self.empty] * groups
        for member, one in zip(members.tolist(), stored.read(column), strict=True):
            if one is not None:
                kept[member] = self.merge(kept[member], one)
        return stored.write(kept)


def looped_column(step: Callable[[Any, Any], Any], merge: Callable[[Any, Any], Any], empty: Any) -> MergedColumn:
    """The form by column of what is only said of single values."""
    loop = Loop(step, merge, empty)
    return MergedColumn(loop.each, loop.merged)
