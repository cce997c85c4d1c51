"""Known aggregates: what a program asks for, and what is kept for it.

What an aggregate keeps of the rows of a key is one or more partial columns, each of which is computed of rows and
merged by itself. So rows can be combined wherever it pays, before the exchange and behind it, and state is merged a
column at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.errors import ProgramError
from holdfast.runtime.partial_aggregates import (
    COUNT,
    COUNT_ALL,
    EARLIEST,
    LATEST,
    MOMENTS,
    REAL_MAX,
    REAL_MIN,
    REAL_SUM,
    WHOLE_MAX,
    WHOLE_MIN,
    WHOLE_SUM,
    Partial,
    PartialFunction,
)
from holdfast.runtime.partial_extremes import timed_value
from holdfast.runtime.partial_moments import MOMENTS_TYPE
from holdfast.types.columns import Column
from holdfast.types.typeinfo import (
    FieldsTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    Types,
)


@dataclass(frozen=True)
class Aggregate:
    """What a program asks for, of a field or of whole rows. Its partials say what is kept for it."""

    field: str | None = None

    def partials(self, fields: dict[str, TypeInformation]) -> tuple[Partial, ...]:
        """What is kept for it, of rows with these fields."""
        raise NotImplementedError

    def value(self, kept: Sequence[Any]) -> Any:
        """The result for one key, of what its partials kept."""
        return kept[0]

    def result(self, kept: Sequence[pa.Array]) -> pa.Array | None:
        """The result for each key, of the columns that were kept for it. None where only ``value`` says it."""
        return kept[0] if type(self).value is Aggregate.value else None

    def result_type(self, fields: dict[str, TypeInformation]) -> TypeInformation:
        return self.partials(fields)[0].type_info

    def is_whole(self, fields: dict[str, TypeInformation]) -> bool:
        """Whether its field is one of integers; fields that are no numbers are refused."""
        return self.number(fields).number is int

    def number(self, fields: dict[str, TypeInformation]) -> TypeInformation:
        """The type of its field, which must be one of numbers."""
        type_info = self._type_of_field(fields)
        if type_info.number is None:
            raise self._is_for("numbers", type_info)
        return type_info

    def ordered(self, fields: dict[str, TypeInformation]) -> TypeInformation:
        """The type of its field, whose values must have one order in Python and in a column."""
        type_info = self._type_of_field(fields)
        if type_info.number is None and not type_info.key_in_arrow:
            raise self._is_for("numbers, text, bytes, booleans and dates", type_info)
        return type_info

    def _type_of_field(self, fields: dict[str, TypeInformation]) -> TypeInformation:
        if self.field not in fields:
            raise ProgramError(
                f"{type(self).__name__}({self.field!r}): the rows have no such field; they have {', '.join(fields)}."
            )
        return fields[self.field]

    def _is_for(self, expected: str, found: TypeInformation) -> ProgramError:
        return ProgramError(
            f"{type(self).__name__}({self.field!r}) is for {expected}; the field is {found.describe()}. Use reduce() "
            "for others."
        )


class Count(Aggregate):
    """How many rows there were, or how many that had the field."""

    def partials(self, fields: dict[str, TypeInformation]) -> tuple[Partial, ...]:
        if self.field is not None and not self._type_of_field(fields).declared:
            raise ProgramError(
                f"Count({self.field!r}): the field has no declared type, and a column does not tell in which rows it "
                "is null. Declare its type, or count with reduce()."
            )
        return (Partial(COUNT_ALL if self.field is None else COUNT, self.field, Types.LONG()),)


class _FieldAggregate(Aggregate):
    def __init__(self, field: str) -> None:
        super().__init__(field)


class Sum(_FieldAggregate):
    """The sum of a field: LONG of integers, DOUBLE of others. Null when no row had it."""

    def partials(self, fields: dict[str, TypeInformation]) -> tuple[Partial, ...]:
        if self.is_whole(fields):
            return (Partial(WHOLE_SUM, self.field, Types.LONG()),)
        return (Partial(REAL_SUM, self.field, Types.DOUBLE()),)


class Min(_FieldAggregate):
    """The least value of a field. Null when no row had it."""

    def partials(self, fields: dict[str, TypeInformation]) -> tuple[Partial, ...]:
        return (Partial(WHOLE_MIN if self.is_whole(fields) else REAL_MIN, self.field, self.number(fields)),)


class Max(_FieldAggregate):
    """The greatest value of a field. Null when no row had it."""

    def partials(self, fields: dict[str, TypeInformation]) -> tuple[Partial, ...]:
        return (Partial(WHOLE_MAX if self.is_whole(fields) else REAL_MAX, self.field, self.number(fields)),)


class Average(_FieldAggregate):
    """The mean of a field, DOUBLE. Null when no row had it."""

    def partials(self, fields: dict[str, TypeInformation]) -> tuple[Partial, ...]:
        return (*Sum(str(self.field)).partials(fields), Partial(COUNT, self.field, Types.LONG()))

    def result(self, kept: Sequence[pa.Array]) -> pa.Array:
        total, count = kept
        divisor = pc.replace_with_mask(count, pc.equal(count, 0), pa.scalar(1))
        return pc.divide(total.cast(pa.float64(), safe=False), divisor)

    def value(self, kept: Sequence[Any]) -> Any:
        total, count = kept
        return None if total is None else float(total) / count

    def result_type(self, fields: dict[str, TypeInformation]) -> TypeInformation:
        return Types.DOUBLE()


@dataclass(frozen=True, init=False)
class Variance(_FieldAggregate):
    """The variance of a field, DOUBLE: of a sample, as VARIANCE and VAR_SAMP of SQL, null when fewer than two rows had
    it; or of all there is, as VAR_POP, null when no row had it.
    """

    population: bool = False

    def __init__(self, field: str, population: bool = False) -> None:
        super().__init__(field)
        object.__setattr__(self, "population", population)

    def partials(self, fields: dict[str, TypeInformation]) -> tuple[Partial, ...]:
        self.number(fields)
        return (Partial(MOMENTS, self.field, MOMENTS_TYPE),)

    def result(self, kept: Sequence[pa.Array]) -> pa.Array:
        count, _, squares = (pc.struct_field(kept[0], place) for place in range(3))
        divisor = count if self.population else pc.subtract(count, 1)
        return pc.divide(squares, pc.if_else(pc.greater(divisor, 0), divisor, None).cast(pa.float64()))

    def value(self, kept: Sequence[Any]) -> Any:
        (moments,) = kept
        divisor = 0 if moments is None else moments[0] if self.population else moments[0] - 1
        return moments[2] / divisor if divisor else None

    def result_type(self, fields: dict[str, TypeInformation]) -> TypeInformation:
        return Types.DOUBLE()


class _ValueInTime(_FieldAggregate):
    _function: PartialFunction

    def partials(self, fields: dict[str, TypeInformation]) -> tuple[Partial, ...]:
        return (Partial(self._function, self.field, timed_value(self.ordered(fields))),)

    def result(self, kept: Sequence[pa.Array]) -> pa.Array:
        return pc.struct_field(kept[0], 1)

    def value(self, kept: Sequence[Any]) -> Any:
        return None if kept[0] is None else kept[0][1]

    def result_type(self, fields: dict[str, TypeInformation]) -> TypeInformation:
        return self.ordered(fields)


class Earliest(_ValueInTime):
    """The value of a field at its least event time; of several rows of that time the least. Null when no row had it."""

    _function = EARLIEST


class Latest(_ValueInTime):
    """The value of a field at its greatest event time; of several rows of that time the greatest. Null when no row had
    it.
    """

    _function = LATEST


def _of_values(partial: Partial, fields: dict[str, TypeInformation]) -> Partial:
    """A partial aggregate that knows the type of its field."""
    if partial.field is None or partial.field not in fields:
        return partial
    value_type = fields[partial.field]
    if partial.function.by_column is None and not value_type.declared:
        raise ProgramError(
            f"{partial.name}: the field has no declared type, and values of a column cannot be told without one. "
            "Declare its type, or use reduce()."
        )
    return replace(partial, value_type=value_type)


@dataclass(frozen=True)
class Aggregation:
    """Some aggregates of the rows of a type, by key columns."""

    row_type: FieldsTypeInfo
    key_columns: tuple[str, ...]
    aggregates: tuple[tuple[str, Aggregate], ...]

    @cached_property
    def fields(self) -> dict[str, TypeInformation]:
        return dict(zip(self.row_type.field_names, self.row_type.field_types, strict=True))

    @cached_property
    def partials(self) -> tuple[Partial, ...]:
        """One that several aggregates need is kept once."""
        fields = self.fields
        asked = dict.fromkeys(p for _, aggregate in self.aggregates for p in aggregate.partials(fields))
        return tuple(_of_values(partial, fields) for partial in asked)

    @property
    def exact(self) -> bool:
        """Whether results are the same, to the last bit, in whatever order rows are put together."""
        return all(partial.function.order_free for partial in self.partials)

    @property
    def by_column(self) -> bool:
        """Whether columns fold rows into what is kept as a loop does, to the last bit."""
        return all(partial.by_column for partial in self.partials)

    @property
    def timed(self) -> Partial | None:
        """One that needs the event times of rows, if there is one."""
        return next((partial for partial in self.partials if partial.timed), None)

    @property
    def needed_fields(self) -> list[str]:
        """The columns of rows that it looks at."""
        used = {*self.key_columns, *(partial.field for partial in self.partials)}
        return [name for name in self.row_type.field_names if name in used]

    def state_type(self) -> TypeInformation:
        """The type of what is kept of a key. Its fields are told apart by what they are: a program may ask for
        aggregates in another order, or for fewer, than the one that stored them. One that is new is refused, since the
        rows so far are not in it.
        """
        partials = self.partials
        return TupleTypeInfo([partial.type_info for partial in partials], [partial.name for partial in partials])

    def combined_type(self) -> RowTypeInfo:
        """The type of partially aggregated rows: the key columns, and the partial ones."""
        names = [*self.key_columns, *(partial.name for partial in self.partials)]
        types = [*(self.fields[name] for name in self.key_columns), *(p.type_info for p in self.partials)]
        return RowTypeInfo(tuple(types), tuple(names))

    def output_type(self) -> TypeInformation:
        names = [*self.key_columns, *(name for name, _ in self.aggregates)]
        results = [aggregate.result_type(self.fields) for _, aggregate in self.aggregates]
        return Types.ROW_NAMED(names, [*(self.fields[name] for name in self.key_columns), *results])

    def results(self, keys: Sequence[pa.Array], kept: Sequence[pa.Array]) -> pa.RecordBatch:
        """The output rows of keys, of the partial columns that are kept for them."""
        columns = [*keys, *self.result_columns(kept)]
        return pa.RecordBatch.from_arrays(columns, names=list(self.output_type().field_names))  # type: ignore[attr-defined]  # a row has fields

    def result_columns(self, kept: Sequence[pa.Array]) -> list[pa.Array]:
        """The columns of the aggregates, of the partial columns."""
        by_partial = dict(zip(self.partials, kept, strict=True))
        return [self._result(aggregate, by_partial) for _, aggregate in self.aggregates]

    def _result(self, aggregate: Aggregate, kept: dict[Partial, pa.Array]) -> pa.Array:
        fields = self.fields
        partials = aggregate.partials(fields)
        found = aggregate.result([kept[partial] for partial in partials])
        if found is not None:
            return found
        columns = [Column(partial.type_info, partial.name).read(kept[partial]) for partial in partials]
        values = [aggregate.value(each) for each in zip(*columns, strict=True)]
        return Column(aggregate.result_type(fields), type(aggregate).__name__).write(values)
