"""What functions of whole columns ask of a stream: declared types, and for known aggregates a key of columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.errors import ProgramError
from holdfast.graph.stream_graph import KeyBy
from holdfast.runtime.aggregates import Aggregate, Aggregation
from holdfast.runtime.windowing.assigners import WindowAssigner
from holdfast.runtime.windowing.known_aggregates import WINDOW_COLUMNS, WindowAggregation
from holdfast.runtime.windowing.serializers import TimeWindowSerializer
from holdfast.types.typeinfo import FieldsTypeInfo, TypeInformation


def check_columns(row_type: TypeInformation, key_type: TypeInformation, output_type: TypeInformation) -> None:
    """Columns have types: those of rows, keys and results must be declared."""
    undeclared = {
        "the rows; give type_info or output_type where the stream is made": row_type,
        "the keys; key_by() columns, or give it a key_type": key_type,
        "the results; give process() an output_type": output_type,
    }
    for what, type_info in undeclared.items():
        if not type_info.declared:
            raise ProgramError(f"A KeyedBatchFunction works on columns, which have types. Declare that of {what}.")


def check_times(row_type: TypeInformation, column: str | int) -> None:
    """A column of event times is one of integers."""
    if not row_type.declared:
        return  # each row says what it is
    fields: list[tuple[str, TypeInformation]] = []
    if isinstance(row_type, FieldsTypeInfo):
        fields = list(zip(row_type.field_names, row_type.field_types, strict=True))
    found = [type_info for place, (name, type_info) in enumerate(fields) if column in (place, name)]
    if not found:
        names = ", ".join(name for name, _ in fields)
        raise ProgramError(
            f"TimestampColumn({column!r}): the rows ({row_type.describe()}) have no such field"
            + (f"; they have {names}." if fields else ". Use a TimestampAssigner of your own.")
        )
    if found[0].number is not int:
        raise ProgramError(
            f"TimestampColumn({column!r}): the field is {found[0].describe()}; expected an integer of milliseconds. "
            "Use a TimestampAssigner of your own for others."
        )


def check_event_times(aggregation: Aggregation, event_time: bool) -> None:
    """Some aggregates need rows with event times."""
    timed = aggregation.timed
    if timed is not None and not event_time:
        raise timed.no_time()


def aggregation_of(row_type: TypeInformation, key_by: KeyBy, aggregates: Mapping[str, Any]) -> Aggregation:
    """What ``aggregate()`` was asked for, checked."""
    if not key_by.columns:
        raise ProgramError(
            'aggregate() needs the key as columns: key_by("column"). Where a function computes the key, put it into a '
            "field with a map() first."
        )
    return _aggregation(row_type, key_by.columns, aggregates)


def window_aggregation_of(
    row_type: TypeInformation,
    key_by: KeyBy | None,
    assigner: WindowAssigner[Any, Any],
    aggregates: Mapping[str, Any],
) -> WindowAggregation:
    """What ``aggregate()`` of windows was asked for, checked; ``key_by`` is None for windows of all rows."""
    if key_by is None:
        aggregation = _aggregation(row_type, (), aggregates)
    else:
        aggregation = aggregation_of(row_type, key_by, aggregates)
    timed = isinstance(assigner.get_window_serializer(), TimeWindowSerializer)
    for name in (*aggregation.key_columns, *aggregates):
        if timed and name in WINDOW_COLUMNS:
            raise ProgramError(
                f"aggregate(): the results have a column '{name}' of the window, and a column of the key or an "
                "aggregate has that name too. Rename it; a column of the key with a map() before key_by()."
            )
    return WindowAggregation(aggregation, timed)


def _aggregation(row_type: TypeInformation, key_columns: tuple[str, ...], aggregates: Mapping[str, Any]) -> Aggregation:
    if not isinstance(row_type, FieldsTypeInfo):
        raise ProgramError(
            f"aggregate() of {', '.join(aggregates)} needs rows with fields of declared types; these are "
            f"{row_type.describe()}. Give type_info or output_type where the stream is made."
        )
    types = dict(zip(row_type.field_names, row_type.field_types, strict=True))
    for column in key_columns:
        if not types[column].groups_in_arrow:
            raise ProgramError(
                f"aggregate(): the column '{column}' of the key is {types[column].describe()}; rows are grouped by "
                "numbers, text, bytes, booleans, dates and times, and what is stored as one of these. Use reduce() or "
                "process() for others."
            )
    if not aggregates:
        raise ProgramError('aggregate() takes what to compute, by name: aggregate(rows=Count(), total=Sum("price")).')
    for name, aggregate in aggregates.items():
        if not isinstance(aggregate, Aggregate):
            raise ProgramError(
                f"aggregate(): '{name}' is {aggregate!r}; expected Count(), Sum(field) or another one of "
                "holdfast.datastream.aggregates. For functions of your own use reduce() or process()."
            )
        if name in key_columns:
            raise ProgramError(f"aggregate(): '{name}' is a column of the key; give the result another name.")
    aggregation = Aggregation(row_type, key_columns, tuple(aggregates.items()))
    aggregation.state_type()  # finds fields that are not there, or not numbers
    return aggregation
