from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import ConfigurationError, ProgramError
from holdfast.state.keygroups import (
    UPPER_BOUND_MAX_PARALLELISM,
    KeyGroupRange,
    default_max_parallelism,
    key_group,
    subtask_of,
)

LAYOUTS = st.integers(1, UPPER_BOUND_MAX_PARALLELISM).flatmap(
    lambda max_parallelism: st.tuples(st.just(max_parallelism), st.integers(1, max_parallelism))
)
#: small enough to look at every subtask or key group of it
SMALL_LAYOUTS = st.integers(1, 300).flatmap(
    lambda max_parallelism: st.tuples(st.just(max_parallelism), st.integers(1, max_parallelism))
)


@pytest.mark.parametrize(
    ("max_parallelism", "ranges"),
    [
        (128, [(0, 127)]),
        (128, [(0, 42), (43, 85), (86, 127)]),
        (128, [(0, 31), (32, 63), (64, 95), (96, 127)]),
        (128, [(0, 25), (26, 51), (52, 76), (77, 102), (103, 127)]),
        (10, [(0, 2), (3, 4), (5, 7), (8, 9)]),
        (3, [(0, 0), (1, 1), (2, 2)]),
    ],
)
def test_ranges_are_flinks(max_parallelism: int, ranges: list[tuple[int, int]]) -> None:
    parallelism = len(ranges)
    got = [KeyGroupRange.of(subtask, max_parallelism, parallelism) for subtask in range(parallelism)]
    assert got == [KeyGroupRange(start, end) for start, end in ranges]


@pytest.mark.parametrize(
    ("parallelism", "expected"),
    {1: 128, 85: 128, 86: 256, 100: 256, 128: 256, 171: 256, 172: 512, 342: 1024, 10923: 16384}.items()
    | {21845: 32768, 32768: 32768}.items(),
)
def test_default_max_parallelism_is_flinks(parallelism: int, expected: int) -> None:
    assert default_max_parallelism(parallelism) == expected


@given(st.integers(1, UPPER_BOUND_MAX_PARALLELISM))
def test_default_max_parallelism_leaves_room(parallelism: int) -> None:
    chosen = default_max_parallelism(parallelism)
    assert parallelism <= chosen <= UPPER_BOUND_MAX_PARALLELISM
    assert chosen & (chosen - 1) == 0


@given(SMALL_LAYOUTS)
def test_ranges_partition_all_key_groups_and_agree_with_subtask_of(layout: tuple[int, int]) -> None:
    max_parallelism, parallelism = layout
    ranges = [KeyGroupRange.of(subtask, max_parallelism, parallelism) for subtask in range(parallelism)]
    assert [group for owned in ranges for group in owned] == list(range(max_parallelism))
    assert max(map(len, ranges)) - min(map(len, ranges)) <= 1
    for subtask, owned in enumerate(ranges):
        assert {subtask_of(group, max_parallelism, parallelism) for group in owned} == {subtask}


@given(LAYOUTS, st.data())
def test_owner_of_a_key_group_has_it_in_its_range(layout: tuple[int, int], data: st.DataObject) -> None:
    max_parallelism, parallelism = layout
    group = data.draw(st.integers(0, max_parallelism - 1))
    owner = subtask_of(group, max_parallelism, parallelism)
    assert group in KeyGroupRange.of(owner, max_parallelism, parallelism)


@given(st.integers(-(2**63), 2**63 - 1), st.integers(1, UPPER_BOUND_MAX_PARALLELISM))
def test_key_group_is_a_positive_remainder(hash64: int, max_parallelism: int) -> None:
    group = key_group(hash64, max_parallelism)
    assert 0 <= group < max_parallelism
    assert (hash64 - group) % max_parallelism == 0


def test_key_group_of_a_negative_hash_is_pmod_not_the_remainder_of_the_unsigned_value() -> None:
    assert key_group(-1, 100) == 99
    assert (2**64 - 1) % 100 != 99


@given(st.tuples(st.integers(0, 60), st.integers(0, 20)), st.tuples(st.integers(0, 60), st.integers(0, 20)))
def test_intersection_is_that_of_sets(first: tuple[int, int], second: tuple[int, int]) -> None:
    left, right = (KeyGroupRange(start, start + more) for start, more in (first, second))
    common = set(left) & set(right)
    cut = left.intersection(right)
    assert (set(cut) if cut is not None else set()) == common
    assert left.intersects(right) == bool(common)


def test_range_is_a_collection_of_its_key_groups() -> None:
    owned = KeyGroupRange(3, 5)
    assert list(owned) == [3, 4, 5]
    assert len(owned) == 3
    assert 5 in owned
    assert 6 not in owned
    assert "3" not in owned


@pytest.mark.parametrize("value", [0, -1, UPPER_BOUND_MAX_PARALLELISM + 1, 1.5, True, "4"])
def test_parallelism_out_of_bounds_is_a_configuration_error(value: Any) -> None:
    with pytest.raises(ConfigurationError, match="parallelism"):
        default_max_parallelism(value)
    with pytest.raises(ConfigurationError, match="maximum parallelism"):
        KeyGroupRange.of(0, value, 1)


def test_parallelism_above_the_maximum_names_both() -> None:
    with pytest.raises(ProgramError, match="Parallelism 9 is above the maximum parallelism 8"):
        KeyGroupRange.of(0, 8, 9)
    with pytest.raises(ProgramError, match="Parallelism 9 is above the maximum parallelism 8"):
        subtask_of(0, 8, 9)


def test_what_does_not_exist_is_an_error() -> None:
    with pytest.raises(ProgramError, match="Key group 8 does not exist"):
        subtask_of(8, 8, 2)
    with pytest.raises(ProgramError, match="Subtask 2 does not exist"):
        KeyGroupRange.of(2, 8, 2)
    with pytest.raises(ProgramError, match="no range of key groups"):
        KeyGroupRange(4, 3)
