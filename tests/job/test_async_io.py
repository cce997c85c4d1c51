"""Asynchronous functions in whole jobs: failures in the middle, event time behind them, and the end of the input."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import pytest

from holdfast.common import Row, Time, TimestampAssigner, Types, WatermarkStrategy
from holdfast.connectors.file_sink.formats import JsonSinkFormat
from holdfast.datastream import (
    AsyncDataStream,
    AsyncFunction,
    AsyncRetryStrategy,
    DataStream,
    OutputTag,
    RuntimeExecutionMode,
)
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.functions import ProcessWindowFunction
from holdfast.datastream.window import TumblingEventTimeWindows
from holdfast.errors import JobExecutionError
from holdfast.runtime.epoch import EpochSpec
from holdfast.runtime.live_task import forget_live_tasks
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import PAIR, Scripted, environment, published
from tests.job.counting import count, counts_of, settings

EPOCHS = [[(row % 4, row) for row in range(first, first + 9)] for first in range(0, 54, 9)]
ROWS = [row for rows in EPOCHS for row in rows]
LONG = Time.seconds(20)


class Asks(AsyncFunction[Any, tuple[int, int]]):
    """The row, after a while. The call that ``fails_at`` counts down to fails."""

    fails_at: ClassVar[int] = -1

    async def async_invoke(self, value: Any) -> list[tuple[int, int]]:
        if isinstance(value, Row):
            # Of a keyed stream.
            assert value.f0 == value.f1[0]
            value = value.f1
        Asks.fails_at -= 1
        if Asks.fails_at == 0:
            raise OSError("the service is gone")
        for _ in range(value[1] * 7 % 5):
            await asyncio.sleep(0)
        return [value]


def placed(source: DataStream, place: str) -> DataStream:
    """Chained to the source, behind an exchange, behind one by key."""
    if place == "keyed":
        return source.key_by(lambda row: row[0], Types.LONG())
    return source.rebalance() if place == "exchanged" else source


def write(stream: DataStream, path: Path) -> None:
    stream.sink_to(FileSink(str(path), JsonSinkFormat()))


@pytest.mark.parametrize("kind", ["ordered", "unordered"])
@pytest.mark.parametrize("place", ["chained", "exchanged", "keyed"])
@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_every_row_once_with_failures_in_the_middle(
    in_process: InProcessEngine, tmp_path: Path, kind: str, place: str, parallelism: int
) -> None:
    """A call fails, an epoch is lost whole, and another one before it begins; counts behind it are in keyed state."""

    def lost(spec: EpochSpec) -> None:
        if (spec.attempt, spec.epoch) == (2, 4):
            raise OSError("the executor is gone")

    def before(spec: EpochSpec) -> None:
        # Another process goes on with every other epoch.
        if spec.epoch % 2:
            forget_live_tasks("job")
        if (spec.attempt, spec.epoch) == (3, 6):
            raise OSError("the task is gone")

    Asks.fails_at = 20
    in_process.after_epoch, in_process.before_epoch = lost, before
    env = environment(**settings(tmp_path)).set_parallelism(parallelism)
    source = env.from_source(Scripted(EPOCHS), WatermarkStrategy.no_watermarks(), "script", PAIR)
    asked = getattr(AsyncDataStream, f"{kind}_wait")(placed(source, place), Asks(), LONG, 3, PAIR)
    write(asked, tmp_path / "asked")
    counted = asked.key_by(lambda row: row[0], Types.LONG()).map_with_state(count, state_type=int, output_type=PAIR)
    write(counted, tmp_path / "counted")
    env.execute()
    assert published(tmp_path / "asked") == sorted(ROWS)
    assert published(tmp_path / "counted") == counts_of(EPOCHS)
    assert {attempt for attempt, _ in in_process.epochs} == {1, 2, 3, 4}


def test_a_stream_behind_a_keyed_function_is_not_keyed(in_process: InProcessEngine, tmp_path: Path) -> None:
    env = environment(**settings(tmp_path))
    source = env.from_source(Scripted(EPOCHS), WatermarkStrategy.no_watermarks(), "script", PAIR)
    kept = source.key_by(lambda row: row[0], Types.LONG()).filter(lambda row: True)
    write(AsyncDataStream.ordered_wait(kept, Untouched(), LONG, output_type=PAIR), tmp_path / "out")
    env.execute()
    assert published(tmp_path / "out") == sorted(ROWS)


class Untouched(AsyncFunction[Any, Any]):
    async def async_invoke(self, value: Any) -> list[Any]:
        return [value]


LATE = OutputTag("late", PAIR)


class InWindow(ProcessWindowFunction[tuple[int, int], tuple[int, int], int, Any]):
    def process(self, key: int, context: Any, elements: Any) -> list[tuple[int, int]]:
        return [(context.window().start, value) for _, value in elements]


class ByValue(TimestampAssigner):
    def extract_timestamp(self, value: tuple[int, int], record_timestamp: int) -> int:
        return value[1]


@pytest.mark.parametrize("kind", ["ordered", "unordered"])
@pytest.mark.parametrize("place", ["chained", "exchanged"])
def test_no_row_comes_late_behind_it(in_process: InProcessEngine, tmp_path: Path, kind: str, place: str) -> None:
    """Windows of five milliseconds; every row has a watermark of its own. The last window fires at the end."""
    Asks.fails_at = 30
    env = environment(**settings(tmp_path)).set_parallelism(2)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ByValue())
    source = env.from_source(Scripted(EPOCHS), strategy, "script", PAIR)
    asked = getattr(AsyncDataStream, f"{kind}_wait")(placed(source, place), Asks(), LONG, 4, PAIR)
    windows = asked.key_by(lambda row: row[0], Types.LONG()).window(TumblingEventTimeWindows.of(Time.milliseconds(5)))
    found = windows.side_output_late_data(LATE).process(InWindow(), PAIR)
    write(found, tmp_path / "windows")
    write(found.get_side_output(LATE), tmp_path / "late")
    env.execute()
    assert published(tmp_path / "windows") == sorted((value - value % 5, value) for _, value in ROWS)
    assert published(tmp_path / "late") == []


class Waits(AsyncFunction[int, int]):
    async def async_invoke(self, value: int) -> list[int]:
        await asyncio.sleep(0.005)
        return [value]


class Doubles(Waits):
    """Gives the number of its calls at the end, below zero."""

    def open(self, runtime_context: Any) -> None:
        self.calls = 0

    async def async_invoke(self, value: int) -> list[int]:
        (row,) = await super().async_invoke(value)
        self.calls += value < 1000
        return [2 * row]

    def finish(self) -> list[int]:
        return [-self.calls]


class WithLastRows(Waits):
    """Gives a row before each checkpoint, and one at the end."""

    def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> list[int]:
        return [1000]

    def finish(self) -> list[int]:
        return [500]


@pytest.mark.parametrize("mode", [RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH])
@pytest.mark.parametrize("kind", ["ordered", "unordered"])
def test_rows_of_functions_before_it_at_the_end_and_before_barriers(
    in_process: InProcessEngine, kind: str, mode: RuntimeExecutionMode, tmp_path: Path
) -> None:
    env = environment(**{"execution.checkpointing.interval": "10 ms", "execution.checkpointing.dir": str(tmp_path)})
    env.set_parallelism(1).set_runtime_mode(mode)
    first = getattr(AsyncDataStream, f"{kind}_wait")(env.from_collection([1, 2, 3]), WithLastRows(), LONG)
    second = getattr(AsyncDataStream, f"{kind}_wait")(first, Doubles(), LONG)
    found = Counter(second.execute_and_collect())
    before_barriers = found.pop(2000, 0)
    assert found == Counter([2, 4, 6, 1000, -4])
    assert (before_barriers > 0) == (mode is RuntimeExecutionMode.STREAMING)


class Broken(AsyncFunction[int, int]):
    """Row 2 fails five times in all."""

    tries: ClassVar[int] = 0

    async def async_invoke(self, value: int) -> list[int]:
        if value == 2:
            Broken.tries += 1
            if Broken.tries <= 5:
                raise ConnectionError(f"try {Broken.tries}")
        return [value]


def passing(error: Exception) -> bool:
    return isinstance(error, ConnectionError)


@pytest.mark.parametrize(("attempts", "succeeds"), [("1", True), ("0", False)])
def test_attempts_of_a_call_count_anew_when_the_job_restarts(
    in_process: InProcessEngine, tmp_path: Path, attempts: str, succeeds: bool
) -> None:
    """Three tries of the first attempt of the job and three of the second: the last one has an answer."""
    Broken.tries = 0
    env = environment(**settings(tmp_path, **{"restart-strategy.fixed-delay.attempts": attempts})).set_parallelism(1)
    retry = AsyncRetryStrategy.fixed_delay(2, 1, None, passing)
    stream = AsyncDataStream.ordered_wait_with_retry(env.from_collection([1, 2, 3]), Broken(), LONG, retry)
    if succeeds:
        assert list(stream.execute_and_collect()) == [1, 2, 3]
        assert Broken.tries == 6
    else:
        with pytest.raises(JobExecutionError) as raised:
            list(stream.execute_and_collect())
        said = str(raised.value) + str(raised.value.__cause__)
        assert "operator 'async wait operator'" in said and "ConnectionError: try 3; the row was 2" in said
