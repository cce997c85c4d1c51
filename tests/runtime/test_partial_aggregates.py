"""The table of partial aggregates: every form of every row of it gives what the loop over single values gives."""

from __future__ import annotations

import math
import pickle
import random
from collections.abc import Callable
from fractions import Fraction
from operator import add
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.common import Row, Types
from holdfast.datastream.aggregates import Average, Count, Earliest, Latest, Max, Min, Sum, Variance
from holdfast.errors import FunctionError, ProgramError
from holdfast.runtime.aggregates import Aggregate, Aggregation
from holdfast.runtime.event_times import Times
from holdfast.runtime.grouping import combine_partials, combine_rows, merge, rows_as_combined
from holdfast.runtime.local_aggregation import Combination, Panes
from holdfast.runtime.partial_aggregates import Partial, PartialFunction
from holdfast.runtime.partial_columns import Values
from holdfast.runtime.running_aggregates import Segments, running
from holdfast.runtime.windowing.known_aggregates import KnownAggregates
from holdfast.types.arrow import row_reader
from holdfast.types.columns import Column
from tests.kit.partial_table import (
    FIELDS,
    LIMIT,
    ROWS,
    Rows,
    aggregation_of,
    all_aggregates,
    columns_of,
    looped,
    same,
    table,
)

ALL = all_aggregates()
Kept = dict[str, tuple[Any, ...]]


def attempt(compute: Callable[[], Kept]) -> Kept | None:
    """None where a sum overflows."""
    try:
        return compute()
    except FunctionError as error:
        assert "may pass 64 bits" in str(error)
        return None


def by_key(aggregation: Aggregation, rows: pa.RecordBatch) -> Kept:
    read = row_reader(aggregation.combined_type())(rows)
    assert len({row[0] for row in read}) == len(read)
    return {row[0]: tuple(row)[1:] for row in read}


def grouped(aggregation: Aggregation, rows: Rows) -> pa.RecordBatch:
    return combine_rows(aggregation, columns_of(rows), times_of(rows))


def times_of(rows: Rows) -> Any:
    return np.array([time for time, _ in rows], dtype=np.int64)


def each_then_grouped(aggregation: Aggregation, rows: Rows) -> pa.RecordBatch:
    each = rows_as_combined(aggregation, columns_of(rows), times_of(rows))
    return combine_partials(aggregation, each.columns[:1], each)


def merged(aggregation: Aggregation, rows: Rows, cut: int) -> Kept:
    """What two halves of the rows give together, by single values."""
    function, halves = KnownAggregates(aggregation), [looped(aggregation, some) for some in (rows[:cut], rows[cut:])]
    empty = function.create_accumulator()
    return {key: function.merge(*(half.get(key, empty) for half in halves)) for key in {**halves[0], **halves[1]}}


def merged_columns(aggregation: Aggregation, rows: Rows, cut: int) -> Kept:
    """As state is merged with what comes: a null is nothing."""
    halves = [by_key(aggregation, grouped(aggregation, some)) for some in (rows[:cut], rows[cut:])]
    keys = list({**halves[0], **halves[1]})
    nothing = (None,) * len(aggregation.partials)
    old, new = ([half.get(key, nothing) for key in keys] for half in halves)
    stored = [Column(partial.type_info, partial.name) for partial in aggregation.partials]
    sides = [[column.write([row[place] for row in side]) for place, column in enumerate(stored)] for side in (old, new)]
    kept = [column.read(one) for column, one in zip(stored, merge(aggregation.partials, *sides), strict=True)]
    return dict(zip(keys, zip(*kept, strict=True), strict=True)) if keys else {}


def folded(partial: Partial, rows: Rows, cut: int, combined: bool) -> dict[str, Any] | None:
    """Into what a loop kept of the rows before."""
    aggregation = Aggregation(aggregation_of(Count()).row_type, ("key",), (("one", Only(partial)),))
    before = attempt(lambda: looped(aggregation, rows[:cut]))
    if before is None:
        return None
    keys = sorted({row[0] for _, row in rows})
    kept = [before[key][0] if key in before else None for key in keys]
    rest, times = columns_of(rows[cut:]), times_of(rows[cut:])
    if combined:
        rest, partial = rows_as_combined(aggregation, rest, times), partial.of_combined
    members = np.array([keys.index(row[0]) for _, row in rows[cut:]], dtype=np.int64)
    numbers = np.arange(len(rest))
    column = None if partial.column is None else Values.of(rest.column(partial.column), numbers, times)
    found = partial.function.columns.folded(partial, kept, members, column)
    return None if found is None else dict(zip(keys, found, strict=True))


class Only(Aggregate):
    """One partial aggregate by itself."""

    def __init__(self, partial: Partial) -> None:
        super().__init__(partial.field)
        object.__setattr__(self, "_partial", partial)

    def partials(self, fields: Any) -> tuple[Partial, ...]:
        return (self._partial,)  # type: ignore[attr-defined]  # set above


def first(kept: Kept | None) -> dict[str, Any] | None:
    return None if kept is None else {key: one for key, (one,) in kept.items()}


BIG = [(0, Row("a", LIMIT - 1, None, None)), (0, Row("a", 1, None, None)), (0, Row("a", -5, None, None))]
ZEROS = [(0, Row("a", None, 0.0, None)), (0, Row("a", None, -0.0, None)), (0, Row("b", None, -0.0, None))]
NOT_NUMBERS = [(0, Row(key, None, value, None)) for key in "ab" for value in (math.nan, 1.0, math.nan)]
ENDLESS = [(0, Row("a", None, math.inf, None)), (0, Row("a", None, -math.inf, None))]


@given(rows=ROWS, cut=st.integers(0, 30))
@example([], 0)
@example([(0, Row("a", None, None, None))], 0)
@example(BIG, 0)
@example(BIG[:2], 0)
@example([(0, Row("a", -LIMIT, None, None)), (0, Row("a", -1, None, None))], 1)
@example(BIG, 1)
@example(ZEROS, 1)
@example(NOT_NUMBERS, 1)
@example(ENDLESS, 1)
def test_every_form_gives_what_the_loop_gives(rows: Rows, cut: int) -> None:
    partials = {partial: partial.function for one in ALL.values() for partial in aggregation_of(one).partials}
    assert {id(function) for function in partials.values()} == {id(function) for function in table()}
    for partial in partials:
        check(partial, rows, cut)


def check(partial: Partial, rows: Rows, cut: int) -> None:
    aggregation = Aggregation(aggregation_of(Count()).row_type, ("key",), (("one", Only(partial)),))
    loop = first(attempt(lambda: looped(aggregation, rows)))
    fits = not partial.overflows or all(-LIMIT <= (sum_ or 0) < LIMIT for sum_ in exact_sums(partial, rows).values())
    for columns in (grouped, each_then_grouped):
        found = first(attempt(lambda: by_key(aggregation, columns(aggregation, rows))))  # noqa: B023  # called at once
        if loop is not None:
            assert found is not None and same(partial, found, loop, rows)
        else:
            # Of a sum that overflows on its way only, columns see nothing.
            assert found == (exact_sums(partial, rows) if fits else None)
    for halves in (merged, merged_columns):
        both = first(attempt(lambda: halves(aggregation, rows, cut)))  # noqa: B023  # called at once
        assert both is None or (fits and (loop is None or same(partial, both, loop, rows)))
    for combined in (False, True):
        fold = folded(partial, rows, cut, combined)
        if fold is None:
            assert loop is None or not partial.by_column or partial.overflows
        else:
            assert loop is not None and list(map(repr, fold.items())) == list(map(repr, sorted(loop.items())))


    check_short_form(partial, rows, cut)


def check_short_form(partial: Partial, rows: Rows, cut: int) -> None:
    """What the short forms of keyed streams do with two values, and with the rows of a key so far."""
    of_two, step = partial.function.of_two, partial.step()
    if of_two is None:
        return
    place = 1 + FIELDS.index(str(partial.field))
    given = [(row[0], row[place]) for _, row in rows if row[place] is not None]
    kept: dict[str, Any] = {}
    expected = []
    for key, value in given:
        if key in kept:
            before, kept[key] = kept[key], of_two(kept[key], value)
            assert same_of_two(partial, before, value, kept[key], step)
        else:
            kept[key] = value
        expected.append((key, kept[key]))
    if partial.type_info == Types.LONG():
        check_running(partial, given, expected, cut)


def same_of_two(partial: Partial, kept: Any, value: Any, found: Any, step: Callable[[Any, Any], Any]) -> bool:
    """What the table keeps; or, as in PyFlink, what came first: of two zeros, and where one is NaN."""
    if partial.name.startswith("sum"):
        result = attempt(lambda: {"": (step(kept, value),)})
        return result is None or repr(result[""][0]) == repr(found)
    if kept != kept or value != value or kept == value == 0:
        return repr(found) == repr(kept)
    return bool(found == step(kept, value))


def check_running(partial: Partial, given: list[tuple[str, int]], expected: list[tuple[str, int]], cut: int) -> None:
    """The rows behind the cut by column, after those before it one by one."""
    rest = given[cut:]
    keys = sorted({key for key, _ in rest})
    start = pa.array([dict(expected[:cut]).get(key) for key in keys], pa.int64())
    segments = Segments.of(np.array([keys.index(key) for key, _ in rest], dtype=np.int64))
    values = np.array([value for _, value in rest], dtype=np.int64)[segments.order]
    fits = all(-LIMIT <= value < LIMIT for _, value in expected[:cut])
    found = running(partial.function, values, start, segments) if fits else None
    wanted = [value for _, value in expected[cut:]]
    if found is None:
        most = sum(abs(value) for _, value in given)
        assert partial.overflows and most * len(given) >= LIMIT, "only a sum that may overflow is left to the loop"
    else:
        assert found.tolist() == [wanted[place] for place in segments.order]


def exact_sums(partial: Partial, rows: Rows) -> dict[str, int | None]:
    sums: dict[str, int | None] = {}
    for _, row in rows:
        before, value = sums.get(row[0]), row[1 + FIELDS.index(str(partial.field))]
        sums[row[0]] = before if value is None else value + (before or 0)
    return sums


@given(rows=ROWS)
def test_results_of_columns_are_those_of_values(rows: Rows) -> None:
    for name, aggregate in ALL.items():
        aggregation = aggregation_of(aggregate)
        kept = attempt(lambda: looped(aggregation, rows))  # noqa: B023  # called at once
        if not kept:
            continue
        function = KnownAggregates(aggregation)
        columns = [
            Column(partial.type_info, partial.name).write([one[place] for one in kept.values()])
            for place, partial in enumerate(aggregation.partials)
        ]
        (column,) = aggregation.result_columns(columns)
        values = [function.get_result(one)[0] for one in kept.values()]
        assert list(map(repr, column.to_pylist())) == list(map(repr, values)), name


def _least_bits(kept: int | None, value: int | None) -> int | None:
    return kept if value is None else value if kept is None else kept & value


def _joined(kept: str | None, value: str | None) -> str | None:
    return kept if value is None else value if kept is None else kept + value


def _count_rows(kept: int, row: bool) -> int:
    return kept + row


def _count_late(kept: int, row: tuple[int, Any]) -> int:
    return kept + (row[0] > 0)


#: Of a program's own: only said of single values.
OWN = {
    "in any order": Partial(PartialFunction("bits", _least_bits, _least_bits, order_free=True), "whole", Types.LONG()),
    "in order": Partial(PartialFunction("text", _joined, _joined), "text", Types.STRING()),
    "of rows": Partial(PartialFunction("seen", _count_rows, add, empty=0, order_free=True), None, Types.LONG()),
    "in time": Partial(PartialFunction("late", _count_late, add, empty=0, timed=True), "text", Types.LONG()),
}


@pytest.mark.parametrize("kind", OWN)
def test_without_forms_by_column_they_are_derived(kind: str) -> None:
    @given(rows=ROWS, cut=st.integers(0, 30))
    def each(rows: Rows, cut: int) -> None:
        check(OWN[kind], rows, cut)

    each()


def test_small_sums_are_folded_by_column() -> None:
    rows = [(0, Row("a", number, None, None)) for number in range(9)]
    for name in ("Sum(whole)", "Count()", "Min(real)", "Latest(text)"):
        for partial in aggregation_of(ALL[name]).partials:
            assert folded(partial, rows, 3, combined=False) is not None
            assert folded(partial, rows, 3, combined=True) is not None


@pytest.mark.parametrize("parts", [1, 2, 7])
@pytest.mark.parametrize("offset", [0, 10**9, -(10**13)])
def test_a_variance_keeps_its_digits_far_from_zero(offset: int, parts: int) -> None:
    chance = random.Random(1)
    numbers = [offset + chance.randrange(-100, 100) for _ in range(700)]
    mean = Fraction(sum(numbers), len(numbers))
    squares = sum((number - mean) ** 2 for number in numbers)
    rows = [(0, Row("a", number, None, None)) for number in numbers]
    aggregation = aggregation_of(Variance("whole"), Variance("whole", population=True))
    assert len(aggregation.partials) == 1
    size = len(rows) // parts
    pieces = [columns_of(rows[start : start + size]) for start in range(0, len(rows), size)]
    combined = pa.concat_batches([combine_rows(aggregation, piece) for piece in pieces])
    kept = combine_partials(aggregation, combined.columns[:1], combined)
    results = [column.to_pylist()[0] for column in aggregation.result_columns(kept.columns[1:])]
    looped_ones = KnownAggregates(aggregation).get_result(looped(aggregation, rows)["a"])
    expected = [float(squares / (len(numbers) - 1)), float(squares / len(numbers))]
    # Of numbers with 13 digits before the point, a mean has few behind it.
    close = 1e-9 if abs(offset) < 10**12 else 1e-4
    assert results == pytest.approx(expected, rel=close)
    assert looped_ones == pytest.approx(expected, rel=close)


@pytest.mark.parametrize(("numbers", "sample", "population"), [([], None, None), ([4], None, 0.0), ([1, 3], 2.0, 1.0)])
def test_variances_of_few_rows(numbers: list[int], sample: float | None, population: float | None) -> None:
    aggregation = aggregation_of(Variance("whole"), Variance("whole", population=True))
    rows = [(0, Row("a", number, None, None)) for number in [None, *numbers]]
    assert KnownAggregates(aggregation).get_result(looped(aggregation, rows)["a"]) == [sample, population]


def test_the_earliest_and_the_latest_value() -> None:
    """They are the least and the greatest of rows of one time; nulls are passed over."""
    rows = [
        (5, Row("a", 1, 2.0, "x")),
        (1, Row("a", 7, math.nan, "y")),
        (1, Row("a", 6, 3.0, "x")),
        (9, Row("a", None, None, None)),
        (5, Row("a", 2, math.nan, "y")),
    ]
    wanted = [one(field) for one in (Earliest, Latest) for field in ("whole", "real", "text")]
    aggregation = aggregation_of(*wanted)
    for some in (rows, rows[::-1]):
        kept = by_key(aggregation, grouped(aggregation, some))
        assert kept == looped(aggregation, some)
        assert KnownAggregates(aggregation).get_result(kept["a"]) == [6, 3.0, "x", 2, 2.0, "y"]


@given(
    times=st.lists(st.integers(-30, 30), min_size=1, max_size=20),
    passed=st.lists(st.integers(-40, 40), min_size=20, max_size=20),
    panes=st.none() | st.just(Panes(7, 2)),
)
def test_rows_that_are_combined_in_time_keep_their_times(
    times: list[int], passed: list[int], panes: Panes | None
) -> None:
    """Each key and pane has its times, and each row behind the end of its pane."""
    rows = [(time, Row("ab"[time % 2], 100 * time, None, None)) for time in times]
    aggregation = aggregation_of(Earliest("whole"), Latest("whole"))
    combination = Combination(aggregation, panes, of_windows=True)
    marks = np.maximum.accumulate(np.array(passed[: len(rows)]))
    found = combination.combined_in_time(columns_of(rows), Times(times_of(rows)), marks).rows
    kept = row_reader(aggregation.combined_type())(found)
    assert all(pair[1] == 100 * pair[0] for _, *pairs in kept for pair in pairs)
    for key in {row[0] for _, row in rows}:
        of_key = [time for time, row in rows if row[0] == key]
        assert min(first[0] for one, first, _ in kept if one == key) == min(of_key)
        assert max(last[0] for one, _, last in kept if one == key) == max(of_key)


def test_values_in_time_need_times() -> None:
    aggregation = aggregation_of(Latest("whole"))
    rows = columns_of([(0, Row("a", 1, None, None))])
    with pytest.raises(ProgramError, match=r"latest\(whole\) needs the event times of rows.*assign_timestamps"):
        combine_rows(aggregation, rows, None)
    function = KnownAggregates(aggregation)
    with pytest.raises(ProgramError, match="rows without one came"):
        function.add((Row("a", 1, None, None), None), function.create_accumulator())


def test_what_is_kept_is_known_by_these_names() -> None:
    """They are in checkpoints and savepoints."""
    aggregates = [Count(), Average("whole"), Min("real"), Max("whole"), Sum("real"), Count("text")]
    assert aggregation_of(*aggregates).state_type().describe() == (
        "TUPLE<count_all(*): LONG, sum(whole): LONG, count(whole): LONG, min(real): DOUBLE, max(whole): LONG, "
        "sum(real): DOUBLE, count(text): LONG>"
    )
    newer = aggregation_of(Variance("real"), Earliest("text"), Latest("whole"))
    assert newer.state_type().describe() == (
        "TUPLE<moments(real): TUPLE<count: LONG, mean: DOUBLE, m2: DOUBLE>, "
        "earliest(text): TUPLE<time: LONG, value: STRING>, latest(whole): TUPLE<time: LONG, value: LONG>>"
    )


def test_the_table_travels_in_plans() -> None:
    aggregation = aggregation_of(*ALL.values())
    again = pickle.loads(pickle.dumps(aggregation))
    rows = [(1, Row("a", 1, 2.0, "x")), (2, Row("b", 3, 4.0, "y"))]
    assert again.partials == aggregation.partials
    assert looped(again, rows) == looped(aggregation, rows)
