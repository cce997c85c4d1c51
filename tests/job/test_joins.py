"""Joins of two streams in whole jobs, against nested loops: in windows, as groups, and within an interval."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Duration, Types, WatermarkStrategy
from holdfast.datastream import (
    CoGroupFunction,
    DataStream,
    FlatJoinFunction,
    JoinFunction,
    OutputTag,
    ProcessJoinFunction,
    StreamExecutionEnvironment,
)
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.window import (
    CountEvictor,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from holdfast.errors import ProgramError
from holdfast.runtime.epoch import EpochSpec
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import Scripted, environment, published
from tests.job.counting import settings
from tests.job.window_jobs import TRIPLE, Third, script
from tests.testing.window_oracle import sliding, tumbling

ORDERS, PAYMENTS = script(epochs=6, seed=11), script(epochs=6, seed=12)
FLAT_ORDERS = [row for rows in ORDERS for row in rows]
FLAT_PAYMENTS = [row for rows in PAYMENTS for row in rows]
JOINED = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
#: No row is late.
STRATEGY = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(200)).with_timestamp_assigner(Third())


def fail_once(in_process: InProcessEngine, epoch: int = 4) -> None:
    def fail(spec: EpochSpec) -> None:
        if (spec.attempt, spec.epoch) == (1, epoch):
            raise OSError("the executor is gone")

    in_process.after_epoch = fail


def streams(tmp_path: Path, parallelism: int) -> tuple[StreamExecutionEnvironment, DataStream, DataStream]:
    env = environment(**settings(tmp_path)).set_parallelism(parallelism)
    orders = env.from_source(Scripted(ORDERS), STRATEGY, "orders", TRIPLE)
    payments = env.from_source(Scripted(PAYMENTS), STRATEGY, "payments", TRIPLE)
    return env, orders, payments


def first(row: Any) -> Any:
    return row[0]


def write(stream: DataStream, path: Path) -> None:
    stream.sink_to(FileSink.json(str(path)))


class Pair(JoinFunction):
    def join(self, first: Any, second: Any) -> Any:
        return first[0], first[1], second[1]


class PairOnce(FlatJoinFunction):
    """Only pairs whose order is above the payment."""

    def join(self, first: Any, second: Any) -> Iterable[Any]:
        if first[1] > second[1]:
            yield first[0], first[1], second[1]


class Both(CoGroupFunction):
    def co_group(self, first: Iterable[Any], second: Iterable[Any]) -> Iterable[Any]:
        first, second = list(first), list(second)
        yield (first or second)[0][0], sum(row[1] for row in first), sum(row[1] for row in second)


def pairs_in(windows: Any) -> list[tuple[str, int, int]]:
    return sorted(
        (order[0], order[1], payment[1])
        for order in FLAT_ORDERS
        for payment in FLAT_PAYMENTS
        if order[0] == payment[0]
        for window in windows(order[2])
        if window in windows(payment[2])
    )


@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_joins_in_windows(in_process: InProcessEngine, tmp_path: Path, parallelism: int) -> None:
    fail_once(in_process)
    env, orders, payments = streams(tmp_path, parallelism)
    keyed = orders.join(payments).where(first, Types.STRING()).equal_to(first)
    write(keyed.window(TumblingEventTimeWindows.of(15)).apply(Pair(), JOINED), tmp_path / "tumbling")
    write(keyed.window(SlidingEventTimeWindows.of(12, 4)).apply(PairOnce(), JOINED), tmp_path / "sliding")
    sums = keyed.window(TumblingEventTimeWindows.of(15)).apply(lambda one, other: (one[1] + other[1],), "sum BIGINT")
    write(sums, tmp_path / "sums")
    env.execute()
    expected = pairs_in(tumbling(15))
    assert expected and published(tmp_path / "tumbling") == expected
    assert published(tmp_path / "sliding") == [row for row in pairs_in(sliding(12, 4)) if row[1] > row[2]]
    assert published(tmp_path / "sums") == sorted((one + other,) for _, one, other in expected)


@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_groups_in_windows(in_process: InProcessEngine, tmp_path: Path, parallelism: int) -> None:
    fail_once(in_process)
    env, orders, payments = streams(tmp_path, parallelism)
    keyed = orders.co_group(payments).where(first, Types.STRING()).equal_to(first)
    write(keyed.window(TumblingEventTimeWindows.of(15)).apply(Both(), JOINED), tmp_path / "tumbling")
    sessions = keyed.window(EventTimeSessionWindows.with_gap(1_000)).evictor(CountEvictor.of(10_000))
    write(sessions.apply(Both(), JOINED), tmp_path / "sessions")
    env.execute()
    groups: dict[Any, list[int]] = {}
    for side, rows in enumerate((FLAT_ORDERS, FLAT_PAYMENTS)):
        for key, value, time in rows:
            groups.setdefault((key, time // 15), [0, 0])[side] += value
    assert published(tmp_path / "tumbling") == sorted((key, *sums) for (key, _), sums in groups.items())
    keys = {key for key, _ in groups}
    totals = [(k, *(sum(v for key, v, _ in rows if key == k) for rows in (FLAT_ORDERS, FLAT_PAYMENTS))) for k in keys]
    assert published(tmp_path / "sessions") == sorted(totals)


class Near(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Iterable[Any]:
        assert (ctx.get_left_timestamp(), ctx.get_right_timestamp()) == (left[2], right[2])
        assert ctx.get_timestamp() == max(left[2], right[2])
        yield left[0], left[1], right[1]


def near(lower: int, upper: int) -> list[tuple[str, int, int]]:
    return sorted(
        (order[0], order[1], payment[1])
        for order in FLAT_ORDERS
        for payment in FLAT_PAYMENTS
        if order[0] == payment[0] and lower <= payment[2] - order[2] <= upper
    )


@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_joins_within_an_interval(in_process: InProcessEngine, tmp_path: Path, parallelism: int) -> None:
    fail_once(in_process)
    env, orders, payments = streams(tmp_path, parallelism)
    left, right = (stream.key_by(first, Types.STRING()) for stream in (orders, payments))
    for lower, upper in [(-5, 8), (3, 9), (-9, -3), (0, 0)]:
        joined = left.interval_join(right).between(Duration.of_millis(lower), upper).process(Near(), JOINED)
        write(joined, tmp_path / f"{lower} to {upper}")
    exclusive = left.interval_join(right).between(-5, 8).lower_bound_exclusive().upper_bound_exclusive()
    write(exclusive.process(Near(), JOINED), tmp_path / "exclusive")
    env.execute()
    for lower, upper in [(-5, 8), (3, 9), (-9, -3), (0, 0)]:
        assert published(tmp_path / f"{lower} to {upper}") == near(lower, upper)
    assert published(tmp_path / "exclusive") == near(-4, 7)


def test_late_rows_of_an_interval_join_go_aside(in_process: InProcessEngine, tmp_path: Path) -> None:
    """On one channel each: the last order is behind what both streams have promised."""
    late = [OutputTag(name, TRIPLE) for name in ("late-orders", "late-payments")]
    env = environment(**settings(tmp_path))
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Third())
    scripts = [[[("a", 1, 100)], [("a", 2, 200)], [("a", 3, 5)]], [[("a", 4, 100)], [("a", 5, 200)], [("a", 6, 7)]]]
    left, right = (
        env.from_source(Scripted(rows), WatermarkStrategy.no_watermarks(), f"rows-{n}", TRIPLE)
        .assign_timestamps_and_watermarks(strategy)
        .set_parallelism(1)
        .key_by(first, Types.STRING())
        for n, rows in enumerate(scripts)
    )
    joined = left.interval_join(right).between(-10, 10)
    joined = joined.side_output_left_late_data(late[0]).side_output_right_late_data(late[1])
    stream = joined.process(Near(), JOINED)
    write(stream, tmp_path / "joined")
    for tag in late:
        write(stream.get_side_output(tag), tmp_path / tag.tag_id)
    env.execute()
    assert published(tmp_path / "joined") == [("a", 1, 4), ("a", 2, 5)]
    assert published(tmp_path / "late-orders") == [("a", 3, 5)]
    assert published(tmp_path / "late-payments") == [("a", 6, 7)]


def test_late_rows_of_a_join_in_windows_go_aside(in_process: InProcessEngine, tmp_path: Path) -> None:
    """As they came, whichever stream they are of."""
    late = OutputTag("late", TRIPLE)
    env = environment(**settings(tmp_path))
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Third())
    scripts = [[[("a", 1, 1)], [("a", 2, 200)], [("a", 3, 5)]], [[("a", 4, 2)], [("a", 5, 200)], [("a", 6, 7)]]]
    first_stream, second_stream = (
        env.from_source(Scripted(rows), WatermarkStrategy.no_watermarks(), f"rows-{n}", TRIPLE)
        .assign_timestamps_and_watermarks(strategy)
        .set_parallelism(1)
        for n, rows in enumerate(scripts)
    )
    keyed = first_stream.join(second_stream).where(first, Types.STRING()).equal_to(first)
    joined = keyed.window(TumblingEventTimeWindows.of(10)).side_output_late_data(late).apply(Pair(), JOINED)
    write(joined, tmp_path / "joined")
    write(joined.get_side_output(late), tmp_path / "late")
    env.execute()
    assert published(tmp_path / "joined") == [("a", 1, 4), ("a", 2, 5)]
    assert published(tmp_path / "late") == [("a", 3, 5), ("a", 6, 7)]


def test_what_joins_refuse(tmp_path: Path) -> None:
    _, orders, payments = streams(tmp_path, 1)
    left, right = orders.key_by(first, Types.STRING()), payments.key_by(lambda row: row[1], Types.LONG())
    with pytest.raises(ProgramError, match=r"STRING.*LONG.*one key_type"):
        left.interval_join(right).between(0, 1).process(Near())
    with pytest.raises(ProgramError, match="no key_by"):
        left.interval_join(payments)  # type: ignore[arg-type]  # what is refused
    with pytest.raises(ProgramError, match="must not be above"):
        left.interval_join(left).between(5, 4)
    with pytest.raises(TypeError, match="takes a ProcessJoinFunction"):
        left.interval_join(left).between(0, 1).process(Pair())
    windows = orders.join(payments).where(first).equal_to(first).window(TumblingEventTimeWindows.of(5))
    with pytest.raises(TypeError, match="takes a JoinFunction"):
        windows.apply(5)
    groups = orders.co_group(payments).where(first).equal_to(first).window(TumblingEventTimeWindows.of(5))
    with pytest.raises(TypeError, match="takes a CoGroupFunction"):
        groups.apply(5)
