"""What functions of whole columns ask of a stream: declared types, and for known aggregates a key of columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.errors import ProgramError
from holdfast.graph.stream_graph import KeyBy
from holdfast.runtime.aggregates import Aggregate, Aggregation
from holdfast.types.typeinfo import (
    BasicTypeInfo,
    DecimalTypeInfo,
    FieldsTypeInfo,
    PickledBytesTypeInfo,
    TypeInformation,
)


def check_columns(row_type: TypeInformation, key_type: TypeInformation, output_type: TypeInformation) -> None:
    """Columns have types: those of rows, keys and results must be declared."""
    undeclared = {
        "the rows; give type_info or output_type where the stream is made": row_type,
        "the keys; key_by() columns, or give it a key_type": key_type,
        "the results; give process() an output_type": output_type,
    }
    for what, type_info in undeclared.items():
        if isinstance(type_info, PickledBytesTypeInfo):
            raise ProgramError(f"A KeyedBatchFunction works on columns, which have types. Declare that of {what}.")


def aggregation_of(row_type: TypeInformation, key_by: KeyBy, aggregates: Mapping[str, Any]) -> Aggregation:
    """What ``aggregate()`` was asked for, checked."""
    if not key_by.columns:
        raise ProgramError(
            'aggregate() needs the key as columns: key_by("column"). Where a function computes the key, put it into a '
            "field with a map() first."
        )
    assert isinstance(row_type, FieldsTypeInfo), "rows that are keyed by columns have fields"
    types = dict(zip(row_type.field_names, row_type.field_types, strict=True))
    for column in key_by.columns:
        if not isinstance(types[column], (BasicTypeInfo, DecimalTypeInfo)):
            raise ProgramError(
                f"aggregate(): the column '{column}' of the key is {types[column].describe()}; rows are grouped by "
                "numbers, text, bytes, booleans, dates and times. Use reduce() or process() for others."
            )
    if not aggregates:
        raise ProgramError('aggregate() takes what to compute, by name: aggregate(rows=Count(), total=Sum("price")).')
    for name, aggregate in aggregates.items():
        if not isinstance(aggregate, Aggregate):
            raise ProgramError(
                f"aggregate(): '{name}' is {aggregate!r}; expected Count(), Sum(field), Min(field), Max(field) or "
                "Average(field). For aggregates of your own use reduce() or process()."
            )
        if name in key_by.columns:
            raise ProgramError(f"aggregate(): '{name}' is a column of the key; give the result another name.")
    aggregation = Aggregation(row_type, key_by.columns, tuple(aggregates.items()))
    aggregation.output_type()  # finds fields that are not there, or not numbers
    return aggregation
