"""Watermarks that are made when an interval is over."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.runtime.batch import Batch
from holdfast.runtime.operator import MAX_WATERMARK, MIN_WATERMARK
from holdfast.runtime.watermarks import TimestampsAndWatermarksOperator
from tests.runtime.operators import Clock, Downstream, set_up
from tests.runtime.test_watermarks import strategy


def generator(interval: int | None, clock: Clock, **more: Any) -> tuple[TimestampsAndWatermarksOperator, Downstream]:
    return set_up(TimestampsAndWatermarksOperator, strategy(0), clock=clock, watermark_interval_ms=interval, **more)


def test_a_watermark_stays_in_force_until_the_interval_is_over() -> None:
    clock = Clock()
    operator, downstream = generator(100, clock)
    for now, times in ((0, [10, 20]), (99, [30]), (100, [40]), (150, [50, 45])):
        clock.now = now
        operator.process(Batch(times), 0)
    # Made behind the rows that had come when the interval was over.
    assert downstream.watermarks == [39]
    assert [watermark for _, _, watermark in downstream.rows] == [MIN_WATERMARK] * 4 + [39] * 2


def test_one_that_waits_is_made_without_rows() -> None:
    clock = Clock()
    operator, downstream = generator(100, clock)
    assert operator.next_processing_timer() is None
    operator.process(Batch([10]), 0)
    assert operator.next_processing_timer() == 100
    operator.fire_processing_timers(99)
    assert downstream.watermarks == []
    operator.fire_processing_timers(100)
    assert downstream.watermarks == [9]
    assert operator.next_processing_timer() is None, "another one would say nothing new"


@pytest.mark.parametrize("interval", [None, 0, 100])
def test_the_last_one_comes_at_the_end_of_the_input(interval: int | None) -> None:
    operator, downstream = generator(interval, Clock())
    operator.process(Batch([10]), 0)
    assert downstream.watermarks == ([9] if interval is None else [])
    operator.process_watermark(MAX_WATERMARK)
    assert downstream.watermarks[-1] == MAX_WATERMARK


def test_with_zero_no_row_moves_time() -> None:
    clock = Clock()
    operator, downstream = generator(0, clock)
    for clock.now in (0, 10_000):
        operator.process(Batch([10, 20]), 0)
        operator.fire_processing_timers(clock.now)
    assert downstream.watermarks == [] and operator.next_processing_timer() is None
    assert {watermark for _, _, watermark in downstream.rows} == {MIN_WATERMARK}


def test_what_was_made_travels_to_the_next_process() -> None:
    clock = Clock()
    operator, _ = generator(100, clock)
    for clock.now, time in ((100, 10), (150, 30)):
        operator.process(Batch([time]), 0)
    again, downstream = generator(100, clock)
    again.adopt_fields(operator.travelling_fields())
    again.process(Batch([5]), 0)
    assert downstream.rows == [(5, 5, 9)]
    assert again.next_processing_timer() == 200
    again.fire_processing_timers(200)
    assert downstream.watermarks == [29]
