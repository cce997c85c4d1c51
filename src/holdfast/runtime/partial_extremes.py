"""A value with its event time, the least or the greatest of such pairs: by single values and by column.

Pairs are compared by their times, and where these are equal by their values, so that the order in which rows come does
not matter. A value that is NaN is passed over where there is another one of the same time.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.runtime.event_times import Numbers
from holdfast.types.typeinfo import TupleTypeInfo, TypeInformation, Types

if TYPE_CHECKING:
    from holdfast.runtime.partial_aggregates import Partial

Pair = tuple[int, Any]


def timed_value(value_type: TypeInformation) -> TupleTypeInfo:
    return TupleTypeInfo([Types.LONG(), value_type], ["time", "value"])


def _chosen(latest: bool, kept: Pair | None, other: Pair | None) -> Pair | None:
    if kept is None or other is None:
        return other if kept is None else kept
    (time, value), (other_time, other_value) = kept, other
    if time != other_time:
        return other if (other_time > time) is latest else kept
    if value != value or other_value != other_value:
        return other if value != value else kept
    return other if value != other_value and (other_value > value) is latest else kept


def _come(latest: bool, kept: Pair | None, given: Pair) -> Pair | None:
    time, value = given
    if value is None:
        return kept
    # Zero has no sign.
    return _chosen(latest, kept, (time, value + 0.0 if value.__class__ is float else value))


def timed_value_of_each(values: pa.Array, times: pa.Array | None, partial: Partial) -> pa.Array:
    assert times is not None, "whoever asks for them has refused rows without"
    missing = values.is_null()
    if pa.types.is_floating(values.type):
        values = pc.add(values, pa.scalar(0.0, values.type))
    return pa.StructArray.from_arrays([times, values], fields=list(partial.type_info.arrow_type()), mask=missing)


def _chosen_of_groups(
    latest: bool, column: pa.Array, members: Numbers, groups: int, type_info: TypeInformation
) -> pa.Array:
    rows = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    times, values = column.flatten()
    when, of_rows = pc.fill_null(times, 0).to_numpy()[rows], members[rows]
    limits = np.iinfo(np.int64)
    best = np.full(groups, limits.min if latest else limits.max, dtype=np.int64)
    (np.maximum if latest else np.minimum).at(best, of_rows, when)
    rows = rows[when == best[of_rows]]
    of_rows = members[rows]
    if len(rows) > 1 and np.bincount(of_rows).max() > 1:
        # NaN comes last in either order.
        order = [("group", "ascending"), ("value", "descending" if latest else "ascending")]
        tied = pa.table({"group": of_rows, "value": values.take(pa.array(rows))})
        places = pc.sort_indices(tied, sort_keys=order).to_numpy()
        rows, of_rows = rows[places], of_rows[places]
    chosen = np.full(groups, -1, dtype=np.int64)
    chosen[of_rows[::-1]] = rows[::-1]
    return column.take(pa.array(chosen, mask=chosen < 0))


add_earliest, add_latest = (partial(_come, latest) for latest in (False, True))
earlier, later = (partial(_chosen, latest) for latest in (False, True))
earliest_of_groups, latest_of_groups = (partial(_chosen_of_groups, latest) for latest in (False, True))
