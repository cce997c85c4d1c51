"""Known aggregates as columns: partial ones of rows, and partial ones put together.

What an aggregate keeps of the rows of a key is one or more partial columns, each of which Arrow computes of rows and
puts together by itself. So rows can be combined wherever it pays, before the exchange and behind it, and state is
merged a column at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.errors import FunctionError, ProgramError
from holdfast.types.typeinfo import (
    FieldsTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    Types,
)

#: Numbers below it, and not below its negative, have 64 bits.
LIMIT = 1 << 63


@dataclass(frozen=True, slots=True)
class Partial:
    """One column that is kept. ``function`` is Arrow's name of what makes it of rows, ``merge`` of what makes one of
    several.
    """

    function: str
    merge: str
    field: str | None
    type_info: TypeInformation

    @property
    def name(self) -> str:
        """What it is, in stored state too."""
        return f"{self.function}({'*' if self.field is None else self.field})"

    @property
    def of_combined(self) -> Partial:
        """This partial aggregate, computed of partially aggregated rows."""
        return replace(self, function=self.merge, field=self.name)

    @property
    def summed(self) -> str:
        """What a sum is of, in errors."""
        return self.field or "the number of rows"


@dataclass(frozen=True)
class Aggregate:
    """What a program asks for, of a field or of whole rows. Its partials say what is kept for it."""

    field: str | None = None

    def partials(self, fields: dict[str, TypeInformation]) -> tuple[Partial, ...]:
        raise NotImplementedError

    def result(self, kept: Sequence[pa.Array]) -> pa.Array:
        """The result for each key, of the columns that were kept for it."""
        return kept[0]

    def value(self, kept: Sequence[Any]) -> Any:
        """The result for one key."""
        return kept[0]

    def result_type(self, fields: dict[str, TypeInformation]) -> TypeInformation:
        return self.partials(fields)[0].type_info

    def _number(self, fields: dict[str, TypeInformation]) -> TypeInformation:
        """The type of its field."""
        kind = type(self).__name__
        if self.field not in fields:
            raise ProgramError(f"{kind}({self.field!r}): the rows have no such field; they have {', '.join(fields)}.")
        type_info = fields[self.field]
        if type_info.number is None:
            raise ProgramError(
                f"{kind}({self.field!r}) is for numbers; the field is {type_info.describe()}. Use reduce() for others."
            )
        return type_info


class Count(Aggregate):
    """How many rows there were, or how many that had the field."""

    def partials(self, fields: dict[str, TypeInformation]) -> tuple[Partial, ...]:
        if self.field is not None and self.field not in fields:
            raise ProgramError(f"Count({self.field!r}): the rows have no such field; they have {', '.join(fields)}.")
        if self.field is not None and not fields[self.field].declared:
            raise ProgramError(
                f"Count({self.field!r}): the field has no declared type, and a column does not tell in which rows it "
                "is null. Declare its type, or count with reduce()."
            )
        return (Partial("count_all" if self.field is None else "count", "sum", self.field, Types.LONG()),)


class _FieldAggregate(Aggregate):
    def __init__(self, field: str) -> None:
        super().__init__(field)


class Sum(_FieldAggregate):
    """The sum of a field: LONG of integers, DOUBLE of others. Null when no row had it."""

    def partials(self, fields: dict[str, TypeInformation]) -> tuple[Partial, ...]:
        whole = self._number(fields).number is int
        return (Partial("sum", "sum", self.field, Types.LONG() if whole else Types.DOUBLE()),)


class Min(_FieldAggregate):
    """The least value of a field. Null when no row had it."""

    def partials(self, fields: dict[str, TypeInformation]) -> tuple[Partial, ...]:
        return (Partial("min", "min", self.field, self._number(fields)),)


class Max(_FieldAggregate):
    """The greatest value of a field. Null when no row had it."""

    def partials(self, fields: dict[str, TypeInformation]) -> tuple[Partial, ...]:
        return (Partial("max", "max", self.field, self._number(fields)),)


class Average(_FieldAggregate):
    """The mean of a field, DOUBLE. Null when no row had it."""

    def partials(self, fields: dict[str, TypeInformation]) -> tuple[Partial, ...]:
        return (*Sum(str(self.field)).partials(fields), Partial("count", "sum", self.field, Types.LONG()))

    def result(self, kept: Sequence[pa.Array]) -> pa.Array:
        total, count = kept
        divisor = pc.replace_with_mask(count, pc.equal(count, 0), pa.scalar(1))
        return pc.divide(total.cast(pa.float64(), safe=False), divisor)

    def value(self, kept: Sequence[Any]) -> Any:
        total, count = kept
        return None if total is None else float(total) / count

    def result_type(self, fields: dict[str, TypeInformation]) -> TypeInformation:
        return Types.DOUBLE()


@dataclass(frozen=True)
class Aggregation:
    """Some aggregates of the rows of a type, by key columns."""

    row_type: FieldsTypeInfo
    key_columns: tuple[str, ...]
    aggregates: tuple[tuple[str, Aggregate], ...]

    @property
    def fields(self) -> dict[str, TypeInformation]:
        return dict(zip(self.row_type.field_names, self.row_type.field_types, strict=True))

    @property
    def partials(self) -> tuple[Partial, ...]:
        """One that several aggregates need is kept once."""
        fields = self.fields
        return tuple(dict.fromkeys(p for _, aggregate in self.aggregates for p in aggregate.partials(fields)))

    @property
    def exact(self) -> bool:
        """Whether results are the same, to the last bit, in whatever order rows are put together."""
        return not any(partial.function == "sum" and partial.type_info == Types.DOUBLE() for partial in self.partials)

    @property
    def needed_fields(self) -> list[str]:
        """The columns of rows that it looks at."""
        used = {*self.key_columns, *(partial.field for partial in self.partials)}
        return [name for name in self.row_type.field_names if name in used]

    def state_type(self) -> TypeInformation:
        """Its fields are told apart by what they are: a program may ask for aggregates in another order, or for fewer,
        than the one that stored them. One that is new is refused, since the rows so far are not in it.
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
        fields, by_partial = self.fields, dict(zip(self.partials, kept, strict=True))
        return [
            aggregate.result([by_partial[partial] for partial in aggregate.partials(fields)])
            for _, aggregate in self.aggregates
        ]


def combine_rows(aggregation: Aggregation, rows: pa.RecordBatch) -> pa.RecordBatch:
    """One row for each key of ``rows``: its key columns and the partial columns."""
    return _as_rows(aggregation, *_grouped(aggregation, _keys_of(aggregation, rows), _wanted(aggregation, rows)))


def combine_rows_by(
    aggregation: Aggregation, rows: pa.RecordBatch, other: pa.Array
) -> tuple[pa.RecordBatch, pa.Array] | None:
    """One row for each key of ``rows`` with each value of another column, and that column. None where a sum may pass 64
    bits.
    """
    keys, wanted = [*_keys_of(aggregation, rows), other], _wanted(aggregation, rows)
    try:
        (*found, others), partials = _grouped(aggregation, keys, wanted)
    except FunctionError:
        return None
    return _as_rows(aggregation, found, partials), others


def rows_as_combined(aggregation: Aggregation, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Each of ``rows`` by itself, in the columns of those that stand for several."""
    partials = []
    for partial in aggregation.partials:
        if partial.field is None:
            partials.append(pa.repeat(1, rows.num_rows))
        else:
            column = rows.column(partial.field)
            partials.append(column.is_valid() if partial.function == "count" else column)
    return _as_rows(aggregation, _keys_of(aggregation, rows), partials)


def combine_partials(aggregation: Aggregation, keys: Sequence[pa.Array], rows: pa.RecordBatch) -> pa.RecordBatch:
    """One row for each key of rows that stand for several; ``keys`` are its columns."""
    wanted = [(partial.merge, rows.column(partial.name)) for partial in aggregation.partials]
    return _as_rows(aggregation, *_grouped(aggregation, keys, wanted))


def _keys_of(aggregation: Aggregation, rows: pa.RecordBatch) -> list[pa.Array]:
    return [rows.column(name) for name in aggregation.key_columns]


def _wanted(aggregation: Aggregation, rows: pa.RecordBatch) -> list[tuple[str, pa.Array | None]]:
    return [
        (partial.function, None if partial.field is None else rows.column(partial.field))
        for partial in aggregation.partials
    ]


def merge(partials: Sequence[Partial], old: Sequence[pa.Array], new: Sequence[pa.Array]) -> list[pa.Array]:
    """What is kept for some keys, of what was kept before and what has come: null is nothing."""
    return [_merged(partial, *pair) for partial, *pair in zip(partials, old, new, strict=True)]


def _merged(partial: Partial, old: pa.Array, new: pa.Array) -> pa.Array:
    if partial.merge != "sum":
        either = {"min": pc.min_element_wise, "max": pc.max_element_wise}[partial.merge]
        return either(old, new, skip_nulls=True)
    try:
        both = pc.add_checked(old, new)
    except pa.ArrowInvalid as error:
        raise FunctionError(too_large(partial.summed)) from error
    return pc.coalesce(both, old, new)


def _grouped(
    aggregation: Aggregation, keys: Sequence[pa.Array], wanted: Sequence[tuple[str, pa.Array | None]]
) -> tuple[list[pa.Array], list[pa.Array]]:
    """The columns of keys, each of which is there once, and the partial ones."""
    key_names = [f"key{number}" for number in range(len(keys))]
    by_name = dict(zip(key_names, keys, strict=True))
    columns, functions = dict(by_name), list[tuple[Any, str]]()
    for partial, (function, column) in zip(aggregation.partials, wanted, strict=True):
        if column is not None:
            columns[partial.name] = column
        if function == "sum":
            _check_sum(partial.summed, column, by_name)
        functions.append(([] if column is None else partial.name, function))
    # The workers of a host share its cores among each other already.
    grouped = pa.table(columns).group_by(key_names, use_threads=False).aggregate(functions)
    # Arrow gives the key columns first or last, by version; by name they are found in both.
    found = [column.combine_chunks() for column in grouped.columns]
    key_columns = [found[grouped.schema.names.index(name)] for name in key_names]
    others = [column for name, column in zip(grouped.schema.names, found, strict=True) if name not in key_names]
    return key_columns, others


def _as_rows(aggregation: Aggregation, keys: Sequence[pa.Array], partials: Sequence[pa.Array]) -> pa.RecordBatch:
    schema = pa.schema(list(aggregation.combined_type().arrow_type()))
    cast = [column.cast(field.type) for column, field in zip([*keys, *partials], schema, strict=True)]
    return pa.RecordBatch.from_arrays(cast, schema=schema)


def _check_sum(field: str, column: pa.Array, keys: dict[str, pa.Array]) -> None:
    """Arrow's sum of integers overflows silently. That it cannot is known of nearly all columns."""
    if not pa.types.is_integer(column.type) or not len(column):
        return
    bounds = pc.min_max(column).as_py()
    largest = max(abs(bounds["min"] or 0), abs(bounds["max"] or 0))
    if largest * len(column) < LIMIT:
        return
    table = pa.table({**keys, "size": pc.abs(column.cast(pa.float64(), safe=False))})
    sizes = table.group_by(list(keys), use_threads=False).aggregate([("size", "sum")]).column("size_sum")
    if pc.max(sizes).as_py() >= LIMIT / 2:
        raise FunctionError(too_large(field))


def too_large(field: str) -> str:
    return (
        f"A sum of {field} may pass 64 bits, and would overflow. Make the field DOUBLE with a map() before key_by(), "
        "or sum it with reduce()."
    )
