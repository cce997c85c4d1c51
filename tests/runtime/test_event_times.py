"""Event times as columns and as lists."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.runtime.event_times import Times

TIMES = st.lists(st.none() | st.integers(-(1 << 63), (1 << 63) - 1), max_size=8)


@given(TIMES, st.booleans())
def test_whatever_they_were_made_of(times: list[int | None], of_column: bool) -> None:
    made = Times.of_column(pa.array(times, pa.int64())) if of_column else Times(times)
    assert len(made) == len(times)
    assert made.column().to_pylist() == list(made.listed) == times
    assert all(type(time) is int for time in made.listed if time is not None), "rows see Python's numbers"
    if None in times:
        assert made.numbers is None
    else:
        assert made.numbers is not None and made.numbers.tolist() == times
    assert list(made.part(1, 3).listed) == times[1:3]


@given(st.lists(st.tuples(TIMES, st.booleans()), min_size=1, max_size=4))
def test_several_batches(parts: list[tuple[list[int | None], bool]]) -> None:
    made = [
        Times(np.array(times, np.int64)) if numbers and None not in times else Times(times) for times, numbers in parts
    ]
    assert list(Times.joined(made).listed) == [time for times, _ in parts for time in times]


def test_a_column_without_nulls_is_not_copied() -> None:
    column = pa.array([1, 2, 3], pa.int64())
    numbers = Times.of_column(column).numbers
    assert numbers is not None and not numbers.flags.owndata
    with pytest.raises(ValueError, match="read-only"):
        numbers[0] = 5
