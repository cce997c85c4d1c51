"""Jobs with windows of all kinds over rows that come out of order, and what they must give."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from holdfast.common import Duration, Types, WatermarkStrategy
from holdfast.common.watermark_strategy import TimestampAssigner
from holdfast.datastream import DataStream, KeyedStream, OutputTag, StreamExecutionEnvironment
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.window import (
    ContinuousEventTimeTrigger,
    EventTimeSessionWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from tests.integration.programs import Scripted
from tests.testing.window_functions import KINDS, PAIR
from tests.testing.window_oracle import MIN, Fired, Row, WindowOracle, session, sliding, tumbling

TRIPLE = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
LATE = OutputTag("late", PAIR)
BOUND, LATENESS = 12, 10


def script(epochs: int = 8, rows: int = 14, seed: int = 3) -> list[list[tuple[str, int, int]]]:
    """(key, value, time) for every epoch: times go on, some rows are late, and some are too late."""
    chance = random.Random(seed)
    return [
        [
            (chance.choice("abcdefg"), chance.randrange(100), max(0, epoch * 25 + chance.randrange(-45, 25)))
            for _ in range(rows)
        ]
        for epoch in range(epochs)
    ]


EPOCHS = script()
#: So many rows that windows take batches of them, and short windows begin and end within an epoch.
LARGE_EPOCHS = script(epochs=5, rows=400, seed=7)


class Third(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[2])


#: By name: the windows of a keyed stream, and the oracle of them.
WINDOWS: dict[str, tuple[Any, Any]] = {
    "tumbling": (lambda s: s.window(TumblingEventTimeWindows.of(20)), lambda: WindowOracle(tumbling(20))),
    "sliding": (lambda s: s.window(SlidingEventTimeWindows.of(20, 8)), lambda: WindowOracle(sliding(20, 8))),
    "session": (
        lambda s: s.window(EventTimeSessionWindows.with_gap(9)),
        lambda: WindowOracle(session(9), merging=True),
    ),
}


def timed(env: StreamExecutionEnvironment, epochs: list[list[Any]], ends: bool, name: str = "rows") -> DataStream:
    """Pairs with event times, on one channel: so what is late depends on the rows alone."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(BOUND))
    source = env.from_source(Scripted(epochs, ends), WatermarkStrategy.no_watermarks(), name, TRIPLE).uid(name)
    times = source.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(Third())).set_parallelism(1)
    return times.uid(f"{name}-times").map(lambda row: row[:2], PAIR).set_parallelism(1).uid(f"{name}-pairs")


def by_key(stream: DataStream) -> KeyedStream:
    return stream.key_by(lambda row: row[0], Types.STRING())


def add_windows(
    env: StreamExecutionEnvironment,
    directory: Path,
    windows: str,
    kind: str,
    ends: bool = True,
    epochs: list[list[Any]] = EPOCHS,
) -> None:
    """The program: sums of windows to one sink, late rows to another."""
    grouped = WINDOWS[windows][0](by_key(timed(env, epochs, ends)))
    _add(grouped.allowed_lateness(LATENESS), directory, kind, "")


def add_short_windows(env: StreamExecutionEnvironment, directory: Path, kind: str) -> None:
    """Windows without lateness over large epochs, which may be beside others in a job."""
    grouped = by_key(timed(env, LARGE_EPOCHS, True, "short")).window(SlidingEventTimeWindows.of(6, 3))
    _add(grouped, directory, kind, "short-")


def _add(windows: Any, directory: Path, kind: str, prefix: str) -> None:
    sums: DataStream = KINDS[kind](windows.side_output_late_data(LATE))
    sums.uid(f"{prefix}windows").sink_to(FileSink.json(str(directory / f"{prefix}sums"))).uid(f"{prefix}sums")
    late = sums.get_side_output(LATE)
    late.sink_to(FileSink.json(str(directory / f"{prefix}late"))).uid(f"{prefix}late")


def expected_of_short_windows() -> tuple[list[Fired], list[Row]]:
    return _expected(WindowOracle(sliding(6, 3)), LARGE_EPOCHS)


def expected(windows: str, epochs: list[list[Any]] = EPOCHS) -> tuple[list[Fired], list[Row]]:
    """The sums and the late rows, sorted."""
    oracle: WindowOracle = WINDOWS[windows][1]()
    oracle.lateness = LATENESS
    return _expected(oracle, epochs)


def _expected(oracle: WindowOracle, epochs: list[list[Any]]) -> tuple[list[Fired], list[Row]]:
    highest = None
    for key, value, time in (row for rows in epochs for row in rows):
        oracle.advance(MIN if highest is None else highest - BOUND - 1)
        oracle.push((key, value), time)
        highest = time if highest is None else max(highest, time)
    oracle.advance((1 << 63) - 1)
    assert oracle.late, "the script has rows that are too late"
    return oracle.take(), sorted(oracle.late)


def early(stream: KeyedStream) -> Any:
    """Windows that fire again and again, each time with the rows that came since."""
    return stream.window(TumblingEventTimeWindows.of(50)).trigger(PurgingTrigger.of(ContinuousEventTimeTrigger.of(10)))
