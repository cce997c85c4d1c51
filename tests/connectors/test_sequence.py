from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.connectors.sequence import VIRTUAL_SPLITS, NumberSequenceSource, SequenceSource, divide
from holdfast.errors import ProgramError
from holdfast.types.typeinfo import Types
from tests.connectors.driving import limit_of, positions_of, read_all, read_epoch, readers_of, run_with_failures


@st.composite
def disjoint_ranges(draw: st.DrawFn) -> list[tuple[int, int]]:
    ranges, first = [], 0
    for gap, length in draw(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 30)), max_size=8)):
        ranges.append((first + gap, first + gap + length - 1))
        first += gap + length
    return ranges


@given(ranges=disjoint_ranges(), parallelism=st.integers(1, 9), seed=st.integers(0, 1000))
def test_dividing_ranges_keeps_every_number_once_in_order_and_in_equal_parts(ranges, parallelism, seed):
    shuffled = random.Random(seed).sample(ranges, len(ranges))
    shares = [divide(shuffled, subtask, parallelism) for subtask in range(parallelism)]
    numbers = [[n for first, last in share for n in range(first, last + 1)] for share in shares]

    assert [n for share in numbers for n in share] == [n for first, last in ranges for n in range(first, last + 1)]
    assert max(map(len, numbers)) - min(map(len, numbers)) <= 1


@pytest.mark.parametrize("seed", range(25))
def test_a_bounded_sequence_is_exact_under_failures_and_rescaling(seed):
    rng = random.Random(seed)
    start = rng.randint(-500, 500)
    end = start + rng.choice([0, 7, 900, 5000])

    rows = run_with_failures(NumberSequenceSource(start, end), rng, epoch_rows=300, max_parallelism=7)

    assert sorted(rows) == list(range(start, end + 1))


def test_subtasks_read_contiguous_ranges_as_columns():
    readers = readers_of(NumberSequenceSource(1, 10), 3)

    assert [read_epoch(reader) for reader in readers] == [[1, 2, 3], [4, 5, 6], [7, 8, 9, 10]]
    assert all(reader.ended for reader in readers)
    assert positions_of(readers) == []
    assert NumberSequenceSource(1, 10).output_type() == Types.LONG()


def test_positions_are_the_ranges_still_to_be_read():
    readers = readers_of(NumberSequenceSource(0, 99), 2)
    for reader in readers:
        read_epoch(reader, 10)

    assert positions_of(readers) == [(10, 49), (60, 99)]


def test_more_subtasks_than_numbers():
    readers = readers_of(NumberSequenceSource(5, 6), 4)

    assert sorted(read_all(readers)) == [5, 6]


@pytest.mark.parametrize("bounds", [(-(2**63), -(2**63) + 2), (2**63 - 3, 2**63 - 1)])
def test_the_ends_of_long(bounds):
    (reader,) = readers_of(NumberSequenceSource(*bounds), 1)

    assert read_epoch(reader, 2) + read_epoch(reader) == list(range(bounds[0], bounds[1] + 1))


@pytest.mark.parametrize(
    ("start", "end", "message"),
    [(2, 1, "not be greater"), (0, 2**63, "end is 9223372036854775808"), ("1", 2, "start is '1'"), (True, 2, "start")],
)
def test_wrong_bounds(start, end, message):
    with pytest.raises(ProgramError, match=message):
        NumberSequenceSource(start, end)


@pytest.mark.parametrize("seed", range(25))
def test_an_endless_sequence_loses_and_repeats_nothing_under_rescaling(seed):
    rng = random.Random(seed)
    rows = run_with_failures(
        SequenceSource(7), rng, epoch_rows=400, max_parallelism=9, enough=lambda rows: len(rows) > 5000
    )

    # Subtasks are not at the same point, so the highest numbers have holes; but each virtual split has none.
    assert len(set(rows)) == len(rows)
    by_split: dict[int, list[int]] = {}
    for number in rows:
        by_split.setdefault((number - 7) % VIRTUAL_SPLITS, []).append((number - 7) // VIRTUAL_SPLITS)
    assert all(sorted(counts) == list(range(len(counts))) for counts in by_split.values())


def test_one_subtask_counts_without_holes():
    (reader,) = readers_of(SequenceSource(100), 1)

    assert read_epoch(reader, 3) + read_epoch(reader, 70_000) == list(range(100, 70_103))


def test_after_rescaling_the_splits_that_are_behind_catch_up_first():
    ahead, behind = readers_of(SequenceSource(), 2)
    read_epoch(ahead, 64 * 10)
    read_epoch(behind, 64 * 2)
    (reader,) = readers_of(SequenceSource(), 1, positions_of([ahead, behind]))

    assert read_epoch(reader, 64 * 8) == [n for n in range(128 * 2, 128 * 10) if n % 2 == 1]
    assert read_epoch(reader, 4) == [1280, 1281, 1282, 1283]


def test_a_subtask_without_splits_is_idle():
    readers = readers_of(SequenceSource(), VIRTUAL_SPLITS + 1)

    assert read_epoch(readers[-1], 10) == []
    assert not readers[-1].ended


class HandClock:
    """A clock that tests move; pickled copies show the same time."""

    now = 1000.0

    def __call__(self) -> float:
        return HandClock.now


def test_the_rate_is_kept_over_all_subtasks_and_in_the_long_run():
    source = SequenceSource(rows_per_second=100, clock=HandClock())
    HandClock.now = 1000.0
    readers = readers_of(source, 3)
    assert [read_epoch(reader) for reader in readers] == [[], [], []]

    total = 0
    for _ in range(40):
        HandClock.now += 0.25
        total += sum(len(read_epoch(reader)) for reader in readers)

    assert 997 <= total <= 1000


def test_a_clock_that_is_set_back_allows_nothing_and_takes_nothing_away():
    HandClock.now = 1000.0
    (reader,) = readers_of(SequenceSource(rows_per_second=10, clock=HandClock()), 1)
    read_epoch(reader)
    HandClock.now = 1002.0
    assert len(read_epoch(reader, 5)) == 5
    HandClock.now = 500.0

    assert len(read_epoch(reader)) == 15


def test_a_rate_must_be_positive():
    with pytest.raises(ProgramError, match="rows_per_second is 0"):
        SequenceSource(rows_per_second=0)


def test_numbers_are_columns():
    (reader,) = readers_of(SequenceSource(), 1)
    (batch,) = reader.read(limit_of(5))

    assert batch.arrow.column("value").to_pylist() == [0, 1, 2, 3, 4]
