from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.checkpoint.ids import LocalCheckpointIdCounter
from holdfast.checkpoint.schedule import CheckpointSchedule


def started(interval: int | None, min_pause: int = 0, max_concurrent: int = 1, delay: int = 0) -> CheckpointSchedule:
    schedule = CheckpointSchedule(interval, min_pause, max_concurrent)
    schedule.start(1000, delay)
    return schedule


def test_the_first_waits_for_its_delay() -> None:
    schedule = started(100, delay=30)
    assert not schedule.is_due(1029, pending=0)
    assert schedule.is_due(1030, pending=0)


def test_the_rate_is_fixed() -> None:
    schedule = started(100)
    schedule.triggered(1007)
    assert schedule.next_due() == 1100
    schedule.triggered(1100)
    assert schedule.next_due() == 1200


def test_missed_times_are_made_up_for_once() -> None:
    schedule = started(100)
    schedule.triggered(1000)
    assert schedule.is_due(1570, pending=0)
    schedule.triggered(1570)
    assert not schedule.is_due(1599, pending=0)
    assert schedule.is_due(1600, pending=0)


def test_the_pause_counts_from_the_completion() -> None:
    schedule = started(100, min_pause=80)
    schedule.triggered(1000)
    schedule.completed(1090)
    assert not schedule.is_due(1169, pending=0)
    assert schedule.is_due(1170, pending=0)


def test_the_interval_is_at_least_the_pause() -> None:
    schedule = started(10, min_pause=50)
    schedule.triggered(1000)
    assert schedule.next_due() == 1050


def test_no_more_than_the_allowed_number_at_once() -> None:
    schedule = started(100, max_concurrent=2)
    assert schedule.is_due(1000, pending=1)
    assert not schedule.is_due(1000, pending=2)


def test_without_an_interval_nothing_is_due() -> None:
    schedule = started(None)
    assert schedule.next_due() is None
    assert not schedule.is_due(10**12, pending=0)
    schedule.triggered(2000)
    assert schedule.next_due() is None


def test_before_the_start_and_after_the_end_nothing_is_due() -> None:
    schedule = CheckpointSchedule(100)
    assert not schedule.is_due(10**12, pending=0)
    schedule.start(0, 0)
    assert schedule.is_due(0, pending=0)
    schedule.stop()
    assert not schedule.is_due(10**12, pending=0)


def test_a_forced_one_ahead_of_time_does_not_move_the_rate() -> None:
    schedule = started(100, delay=100)
    schedule.triggered(1050)
    assert schedule.next_due() == 1100


@given(
    interval=st.integers(1, 50),
    min_pause=st.integers(0, 60),
    steps=st.lists(st.tuples(st.integers(1, 80), st.integers(0, 30)), max_size=40),
)
def test_never_too_close_and_never_forgotten(interval: int, min_pause: int, steps: list[tuple[int, int]]) -> None:
    schedule = started(interval, min_pause)
    now, last_completion, triggers = 1000, None, []
    for wait, duration in steps:
        now += wait
        due = schedule.next_due()
        assert due is not None
        assert schedule.is_due(now, 0) == (now >= due)
        assert due - now <= max(interval, min_pause)
        if now >= due:
            if last_completion is not None:
                assert now - last_completion >= min_pause
            triggers.append(now)
            schedule.triggered(now)
            now += duration
            schedule.completed(now)
            last_completion = now


def test_numbers_begin_at_one_and_pass_over_what_was_seen() -> None:
    assert [LocalCheckpointIdCounter().next()] == [1]
    counter = LocalCheckpointIdCounter({3, 17, 5})
    assert [counter.next(), counter.next()] == [18, 19]
    counter.pass_over(40)
    counter.pass_over(2)
    assert counter.next() == 41
