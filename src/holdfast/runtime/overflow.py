"""The overflow rule of known aggregates: a sum of integers that is no number of 64 bits stops the job.

Where rows are added one after the other, every sum on the way is looked at. Where columns are summed, it is shown first
that no sum on the way can overflow, or else what the sums of the keys come to.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.errors import FunctionError

#: The numbers of 64 bits are below it, and not below its negative.
LIMIT = 1 << 63
#: Columns are summed as two halves of their bits where a sum may overflow. No batch has so many rows that these do.
_HALF = 32


def too_large(field: str) -> str:
    return (
        f"A sum of {field} may pass 64 bits, and would overflow. Make the field DOUBLE with a map() before key_by(), "
        "or sum it with reduce()."
    )


def checked_sum(field: str, kept: int | None, value: int | None) -> int | None:
    """The sum of two numbers, either of which may be missing."""
    if value is None or kept is None:
        return kept if value is None else value
    total = kept + value
    if -LIMIT <= total < LIMIT:
        return total
    raise FunctionError(too_large(field))


def cannot_overflow(values: npt.NDArray[Any], before: npt.NDArray[Any], limit: int = LIMIT) -> bool:
    """Whether no sum of values, added to one of those before, comes to the limit or its negative, in any order."""
    largest, start = (
        max(abs(int(some.min())), abs(int(some.max()))) if len(some) else 0 for some in (values, before)
    )
    return largest * len(values) + start < limit


def refuse_overflow(field: str, column: pa.Array, keys: dict[str, pa.Array]) -> None:
    """Arrow's sum of integers overflows silently: raises where that of a key would. That it cannot is known of nearly
    all columns without a look at the keys.
    """
    if not pa.types.is_integer(column.type) or not len(column):
        return
    bounds = pc.min_max(column).as_py()
    largest = max(abs(bounds["min"] or 0), abs(bounds["max"] or 0))
    if largest * len(column) < LIMIT:
        return
    wide = column.cast(pa.int64())
    halves = {"high": pc.shift_right(wide, _HALF), "low": pc.bit_wise_and(wide, (1 << _HALF) - 1)}
    grouped = pa.table({**keys, **halves}).group_by(list(keys), use_threads=False)
    sums = grouped.aggregate([("high", "sum"), ("low", "sum")])
    high, low = (pc.fill_null(sums.column(f"{half}_sum"), 0).to_numpy() for half in halves)
    tops = high + (low >> _HALF)
    most = LIMIT >> _HALF
    if np.any((tops < -most) | (tops >= most)):
        raise FunctionError(too_large(field))
