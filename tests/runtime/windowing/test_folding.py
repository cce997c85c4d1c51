"""Folding by column: each part gives what its plain Python gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.common import Row, Types
from holdfast.datastream.window import SlidingEventTimeWindows
from holdfast.errors import FunctionError
from holdfast.runtime.aggregates import Aggregate, Aggregation, Average, Count, Max, Min, Sum
from holdfast.runtime.partial_columns import Values
from holdfast.runtime.windowing.folding import Groups, distinct_keys
from holdfast.runtime.windowing.known_aggregates import KnownAggregates
from holdfast.types.typeinfo import RowTypeInfo

TIMES = st.lists(st.integers(-(10**12), 10**12) | st.integers(-30, 30), min_size=1, max_size=20)


@given(TIMES, st.integers(1, 20), st.integers(1, 20), st.integers(-19, 19))
def test_windows_of_many_times(times: list[int], size: int, slide: int, offset: int) -> None:
    assigner = SlidingEventTimeWindows(size, slide, offset % slide if offset >= 0 else -(-offset % slide))
    rows, starts = assigner.starts_of(np.array(times, dtype=np.int64))
    expected = [(row, window.start) for row, time in enumerate(times) for window in assigner.windows_of(time)]
    assert list(zip(rows.tolist(), starts.tolist(), strict=True)) == expected


@given(
    st.lists(st.tuples(st.integers(-5, 5) | st.sampled_from([-(10**9), 10**9]), st.integers(0, 6)), min_size=1),
    st.integers(1, 9),
    st.integers(-9, 9),
)
def test_groups_are_those_of_windows_and_keys(members: list[tuple[int, int]], slide: int, offset: int) -> None:
    places = [(number * slide + offset, key) for number, key in members]
    starts, keys = (np.array(column, dtype=np.int64) for column in zip(*places, strict=True))
    groups = Groups.of(starts, keys, slide)
    of_group = list(zip(groups.starts.tolist(), groups.keys.tolist(), strict=True))
    assert [of_group[group] for group in groups.members.tolist()] == places
    assert of_group == sorted(set(places))
    found = [of_group[first:end] for _, first, end in groups.windows()]
    assert [start for start, _, _ in groups.windows()] == sorted({start for start, _ in places})
    assert [len({start for start, _ in some}) for some in found] == [1] * len(found)
    assert [one for some in found for one in some] == of_group


KEYS = st.tuples(st.sampled_from(["a", "b", None]), st.sampled_from([1, 2, None]))


@given(st.lists(KEYS, min_size=1))
def test_distinct_keys_of_several_fields(keys: list[tuple[Any, Any]]) -> None:
    texts, wholes = zip(*keys, strict=True)
    columns = [pa.array(texts, pa.string()), pa.array(wholes, pa.int32())]
    distinct, numbers = distinct_keys(pa.StructArray.from_arrays(columns, names=["f0", "f1"]))
    found = [tuple(key.values()) for key in distinct.to_pylist()]
    assert [found[number] for number in numbers.tolist()] == keys
    assert len(set(found)) == len(found)


ROW = Types.ROW_NAMED(["whole", "real"], [Types.LONG(), Types.DOUBLE()])
ALL: dict[str, Aggregate] = {
    "rows": Count(),
    "wholes": Count("whole"),
    "sum": Sum("whole"),
    "least": Min("whole"),
    "most": Max("whole"),
    "reals": Sum("real"),
    "low": Min("real"),
    "high": Max("real"),
    "mean": Average("real"),
}


def aggregation(**aggregates: Aggregate) -> Aggregation:
    assert isinstance(ROW, RowTypeInfo)
    return Aggregation(ROW, (), tuple(aggregates.items()))


WHOLE = st.none() | st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-9, 9)
REAL = st.none() | st.floats(width=64) | st.sampled_from([0.0, -0.0, 0.1, 1e300])
MEMBERS = st.lists(st.tuples(st.integers(0, 3), st.tuples(WHOLE, REAL)), min_size=1, max_size=30)


INFINITE = [(0, (None, float(text))) for text in ("inf", "-inf")]


@given(MEMBERS, st.integers(0, 30))
@example(INFINITE, 0)
@example([(0, (None, 1e308))] * 2, 0)
@example([(0, (None, 0.0)), (0, (None, -0.0)), (1, (None, -0.0)), (1, (None, 0.0))], 0)
@example([(0, (None, -0.0))], 0)
def test_a_fold_is_what_a_loop_gives_to_the_last_bit(members: list[tuple[int, Any]], cut: int) -> None:
    known, function = aggregation(**ALL), KnownAggregates(aggregation(**ALL))
    kept: list[Any] = [None] * 4
    try:
        looped = add_all(function, [None] * 4, members)
        kept = add_all(function, kept, members[:cut])
    except FunctionError:
        looped = None
    rest = members[cut:] if looped is not None else members
    if not rest:
        return
    groups = np.array([group for group, _ in rest], dtype=np.int64)
    rows = np.arange(len(rest))
    for place, partial in enumerate(known.partials):
        column = None
        if partial.field is not None:
            field = ("whole", "real").index(partial.field)
            arrow = pa.array([row[field] for _, row in rest], ROW.field_types[field].arrow_type())  # type: ignore[attr-defined]
            column = Values.of(arrow, rows)
        before = [None if one is None else one[place] for one in kept]
        folded = partial.function.columns.folded(partial, before, groups, column)
        if looped is None:
            assert folded is None or partial.name != "sum(whole)"
        elif folded is not None:
            assert same(folded, [None if one is None else one[place] for one in looped], partial.function.name)


def add_all(function: KnownAggregates, kept: list[Any], members: list[tuple[int, Any]]) -> list[Any]:
    kept = list(kept)
    for group, row in members:
        accumulator = function.create_accumulator() if kept[group] is None else kept[group]
        kept[group] = function.add(Row(*row), accumulator)
    return kept


def same(folded: list[Any], looped: list[Any], function: str) -> bool:
    return [_shown(one, function) for one in folded] == [_shown(one, function) for one in looped]


def _shown(kept: Any, function: str) -> str:
    """A group without rows has nothing, or a count of 0."""
    return repr(kept or None) if function.startswith("count") else repr(kept)


@given(MEMBERS, st.integers(0, 30))
def test_accumulators_are_merged(members: list[tuple[int, Any]], cut: int) -> None:
    """A sum of floating numbers gives something else in another order, so only the rest is compared."""
    named = {name: one for name, one in ALL.items() if name not in ("reals", "mean", "sum")}
    function = KnownAggregates(aggregation(**named))
    whole = add_all(function, [None] * 4, members)
    parts = (add_all(function, [None] * 4, some) for some in (members[:cut], members[cut:]))
    for one, other, both in zip(*parts, whole, strict=True):
        if one is not None and other is not None:
            assert list(map(repr, function.merge(one, other))) == list(map(repr, both))


@pytest.mark.parametrize(
    ("values", "refused"), [([(1 << 63) - 1], False), ([(1 << 63) - 1, 1], True), ([-(1 << 63), -1], True)]
)
def test_a_loop_refuses_what_passes_64_bits(values: list[int], refused: bool) -> None:
    function = KnownAggregates(aggregation(total=Sum("whole")))
    rows = [(0, (value, None)) for value in values]
    if refused:
        with pytest.raises(FunctionError, match="may pass 64 bits"):
            add_all(function, [None], rows)
    else:
        assert add_all(function, [None], rows) == [(sum(values),)]
