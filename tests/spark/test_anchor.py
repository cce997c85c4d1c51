"""Where slots are put: the arithmetic of it, without Spark."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.job.placement import spread_evenly
from holdfast.spark.anchor import murmur3_int, slot_values


@given(st.integers(1, 300))
def test_each_partition_has_a_value_that_falls_on_it(slots: int) -> None:
    values = slot_values(slots)
    assert [murmur3_int(value) % slots for value in values] == list(range(slots))


def test_murmur3_is_that_of_spark() -> None:
    # SELECT hash(0), hash(1), hash(42), hash(-7)
    assert [murmur3_int(value) for value in (0, 1, 42, -7)] == [933211791, -559580957, 29417773, -1618159745]


@pytest.mark.parametrize(
    ("placement", "executors", "even"),
    [
        ("ab", 2, True),
        ("aa", 2, False),
        ("aa", 1, True),
        ("aab", 2, True),
        ("aaab", 2, False),
        ("aabb", 3, True),
        ("aaab", 3, False),
        ("ab", 5, True),
        ("aa", 5, False),
        ("a", 0, True),
    ],
)
def test_an_executor_with_more_than_its_share_is_found(placement: str, executors: int, even: bool) -> None:
    assert spread_evenly(list(placement), executors) is even
