"""Rows, and partial aggregates, combined by key: one row for each key, with the partial columns of known aggregates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from holdfast.errors import FunctionError
from holdfast.runtime.aggregates import Aggregation
from holdfast.runtime.event_times import Numbers
from holdfast.runtime.overflow import refuse_overflow
from holdfast.runtime.partial_aggregates import Partial
from holdfast.runtime.partial_columns import ArrowColumn

#: The column of the numbers of rows, which cannot be the name of a partial column.
_PLACES = "places"
#: A column for each partial aggregate, None for rows as such.
Columns = list[pa.Array | None]


def combine_rows(aggregation: Aggregation, rows: pa.RecordBatch, times: Numbers | None = None) -> pa.RecordBatch:
    """One row for each key of ``rows``: its key columns and the partial columns."""
    partials, columns = aggregation.partials, _wanted(aggregation, rows, times)
    return _as_rows(aggregation, *_grouped(partials, _keys_of(aggregation, rows), columns))


def combine_rows_by(
    aggregation: Aggregation, rows: pa.RecordBatch, other: pa.Array, times: Numbers | None = None
) -> tuple[pa.RecordBatch, pa.Array] | None:
    """One row for each key of ``rows`` with each value of another column, and that column. None where a sum overflows
    64 bits.
    """
    keys, columns = [*_keys_of(aggregation, rows), other], _wanted(aggregation, rows, times)
    try:
        (*found, others), partials = _grouped(aggregation.partials, keys, columns)
    except FunctionError:
        return None
    return _as_rows(aggregation, found, partials), others


def rows_as_combined(aggregation: Aggregation, rows: pa.RecordBatch, times: Numbers | None = None) -> pa.RecordBatch:
    """Each of ``rows`` by itself, as partial aggregates."""
    partials = [_of_each(partial, rows, times) for partial in aggregation.partials]
    return _as_rows(aggregation, _keys_of(aggregation, rows), partials)


def combine_partials(aggregation: Aggregation, keys: Sequence[pa.Array], rows: pa.RecordBatch) -> pa.RecordBatch:
    """One row for each key of partial aggregates; ``keys`` are its columns."""
    partials = [partial.of_combined for partial in aggregation.partials]
    return _as_rows(aggregation, *_grouped(partials, keys, [rows.column(partial.name) for partial in partials]))


def merge(partials: Sequence[Partial], old: Sequence[pa.Array], new: Sequence[pa.Array]) -> list[pa.Array]:
    """What is kept for some keys, of what was kept before and what has come: null is nothing."""
    return [
        partial.function.columns.merged(partial, *pair) for partial, *pair in zip(partials, old, new, strict=True)
    ]


def _keys_of(aggregation: Aggregation, rows: pa.RecordBatch) -> list[pa.Array]:
    return [rows.column(name) for name in aggregation.key_columns]


def _wanted(aggregation: Aggregation, rows: pa.RecordBatch, times: Numbers | None) -> Columns:
    """What is grouped: fields where Arrow groups rows itself, else the partial aggregates of each row."""
    return [
        _of_each(partial, rows, times) if partial.hashed is None else _values(partial, rows)
        for partial in aggregation.partials
    ]


def _of_each(partial: Partial, rows: pa.RecordBatch, times: Numbers | None) -> pa.Array:
    return partial.function.columns.of_each(partial, _values(partial, rows), rows.num_rows, times)


def _values(partial: Partial, rows: pa.RecordBatch) -> pa.Array | None:
    return None if partial.field is None else rows.column(partial.field)


def _grouped(
    partials: Sequence[Partial], keys: Sequence[pa.Array], wanted: Columns
) -> tuple[list[pa.Array], list[pa.Array]]:
    """The columns of keys, each of which is there once, and the partial ones."""
    key_names = [f"key{number}" for number in range(len(keys))]
    by_name = dict(zip(key_names, keys, strict=True))
    columns, functions = dict(by_name), list[tuple[Any, str]]()
    for partial, column in zip(partials, wanted, strict=True):
        function = partial.hashed
        if function is None:
            continue
        if column is not None:
            columns[partial.name] = column
            if function == "sum":
                refuse_overflow(partial.summed, column, by_name)
        functions.append(([] if column is None else partial.name, function))
    if len(functions) < len(partials):
        columns[_PLACES] = pa.array(np.arange(len(keys[0])))
        functions.append((_PLACES, "list"))
    # The workers of a host share its cores among each other already.
    grouped = pa.table(columns).group_by(key_names, use_threads=False).aggregate(functions)
    # Arrow gives the key columns first or last, by version; by name they are found in both.
    found = [column.combine_chunks() for column in grouped.columns]
    key_columns = [found[grouped.schema.names.index(name)] for name in key_names]
    others = [column for name, column in zip(grouped.schema.names, found, strict=True) if name not in key_names]
    return key_columns, _kept(partials, wanted, others)


def _kept(partials: Sequence[Partial], wanted: Columns, others: list[pa.Array]) -> list[pa.Array]:
    """The partial columns of groups, of what Arrow has grouped; behind that, if it is needed, the rows of each."""
    grouped, kept = iter(others), list[pa.Array]()
    members: Numbers | None = None
    for partial, column in zip(partials, wanted, strict=True):
        columns = partial.function.columns
        if isinstance(columns, ArrowColumn):
            kept.append(columns.grouped(next(grouped)))
            continue
        assert column is not None, "these are grouped as the partial aggregates of rows"
        members = _members(others[-1]) if members is None else members
        kept.append(columns.grouped(partial, column, members, len(others[-1])))
    return kept


def _members(places: pa.Array) -> Numbers:
    """Which group each row is in, of the lists of their rows."""
    members = np.empty(len(places.flatten()), dtype=np.int64)
    members[places.flatten().to_numpy()] = places.value_parent_indices().to_numpy()
    return members


def _as_rows(aggregation: Aggregation, keys: Sequence[pa.Array], partials: Sequence[pa.Array]) -> pa.RecordBatch:
    schema = pa.schema(list(aggregation.combined_type().arrow_type()))
    cast = [column.cast(field.type) for column, field in zip([*keys, *partials], schema, strict=True)]
    return pa.RecordBatch.from_arrays(cast, schema=schema)
