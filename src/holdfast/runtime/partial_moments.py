"""The count, the mean and the sum of squared distances from it, of which variances are made: by single values and by
column. Each merge is that of Chan, Golub and LeVeque, which loses no digits where the mean is far from zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.runtime.event_times import Numbers
from holdfast.types.typeinfo import TupleTypeInfo, TypeInformation, Types

if TYPE_CHECKING:
    from holdfast.runtime.partial_aggregates import Partial

Moments = tuple[int, float, float]

#: How many values, their mean, and the sum of their squared distances from it.
MOMENTS_TYPE = TupleTypeInfo([Types.LONG(), Types.DOUBLE(), Types.DOUBLE()], ["count", "mean", "m2"])


def add_moment(kept: Moments | None, value: float | None) -> Moments | None:
    if value is None:
        return kept
    number = float(value)
    # NaN and infinities have no distance from themselves.
    return merge_moments(kept, (1, number, number - number))


def merge_moments(kept: Moments | None, other: Moments | None) -> Moments | None:
    if kept is None or other is None:
        return other if kept is None else kept
    (count, mean, m2), (others, their_mean, their_m2) = kept, other
    total, gap = count + others, their_mean - mean
    return total, mean + gap * others / total, m2 + their_m2 + gap * gap * count * others / total


def moment_of_each(values: pa.Array, times: pa.Array | None, partial: Partial) -> pa.Array:
    numbers = values.cast(pa.float64(), safe=False)
    columns = [pa.repeat(1, len(values)), numbers, pc.subtract(numbers, numbers)]
    return _column(columns, values.is_null(), partial.type_info)


def merge_columns_of_moments(column: pa.Array, members: Numbers, groups: int, type_info: TypeInformation) -> pa.Array:
    if column.null_count:
        there = column.is_valid()
        column, members = column.filter(there), members[there.to_numpy(zero_copy_only=False)]
    counts, means, m2s = (field.to_numpy(zero_copy_only=False) for field in column.flatten())
    # Distances from one of its own values: of a group far from zero they are small, and their sum has all its digits.
    origins = np.zeros(groups)
    origins[members[::-1]] = means[::-1]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        totals = np.bincount(members, counts, groups)
        far = means - origins[members]
        shifts = np.bincount(members, counts * far, groups) / totals
        gaps = far - shifts[members]
        squares = np.bincount(members, m2s + counts * gaps * gaps, groups)
        together = origins + shifts
    # Without any row numpy counts in integers.
    columns = [pa.array(each.astype(kind)) for each, kind in ((totals, "i8"), (together, "f8"), (squares, "f8"))]
    return _column(columns, pa.array(totals == 0), type_info)


def _column(columns: list[pa.Array], missing: pa.Array, type_info: TypeInformation) -> pa.Array:
    return pa.StructArray.from_arrays(columns, fields=list(type_info.arrow_type()), mask=missing)
