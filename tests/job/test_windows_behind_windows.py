"""Results of windows are rows of the windows behind them, from whichever subtask they come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from holdfast.common import Time, Types, WatermarkStrategy
from holdfast.common.watermark_strategy import TimestampAssigner
from holdfast.datastream import KeyedProcessFunction, ProcessWindowFunction
from holdfast.datastream.window import TumblingEventTimeWindows
from tests.integration.programs import PAIR, environment

KEYS = 20
#: One row of each key every 10 ms, so that each window of 100 ms has ten of each.
ROWS = [(key, time) for time in range(0, 1_000, 10) for key in range(KEYS)]


class Times(TimestampAssigner):
    def extract_timestamp(self, value: tuple[int, int], record_timestamp: int) -> int:
        return value[1]


class CountOfWindow(ProcessWindowFunction):
    def process(self, key: int, context: Any, elements: Iterable[Any]) -> Iterator[tuple[int, int]]:
        yield context.window().end, len(list(elements))


class AtTheEnd(KeyedProcessFunction):
    """(end of its window, 1) of every row, by a timer at the last moment of the window."""

    def process_element(self, value: tuple[int, int], ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(value[1] // 100 * 100 + 99)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[tuple[int, int]]:
        yield timestamp + 1, 10


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("first", ["windows", "timers"])
def test_no_result_of_another_subtask_is_late(first: str, tmp_path: Any) -> None:
    env = environment(**{"holdfast.state.local-dir": str(tmp_path), "holdfast.epoch.max-rows": "170"})
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Times())
    rows = env.from_collection(ROWS, PAIR).assign_timestamps_and_watermarks(strategy)
    keyed, windows = rows.key_by(lambda row: row[0], Types.LONG()), TumblingEventTimeWindows.of(Time.milliseconds(100))
    timed = first == "timers"
    counts = keyed.process(AtTheEnd(), PAIR) if timed else keyed.window(windows).process(CountOfWindow(), PAIR)
    totals = counts.key_by(lambda row: row[0], Types.LONG()).window(windows).reduce(lambda a, b: (a[0], a[1] + b[1]))
    assert sorted(totals.execute_and_collect()) == [(end, 10 * KEYS) for end in range(100, 1_001, 100)]
