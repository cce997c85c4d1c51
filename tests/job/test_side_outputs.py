"""Side outputs in whole jobs: from every kind of function that yields, with checkpoints and restarts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import TimestampAssigner, Types, WatermarkStrategy
from holdfast.connectors.file_sink.formats import JsonSinkFormat
from holdfast.datastream import (
    BroadcastProcessFunction,
    DataStream,
    FlatMapFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    OutputTag,
    ProcessFunction,
    StreamExecutionEnvironment,
    StreamOperator,
)
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.state import MapStateDescriptor
from holdfast.runtime.epoch import EpochSpec
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import PAIR, Scripted, environment, published
from tests.job.counting import settings

EPOCHS = [[(row % 4, row) for row in range(first, first + 6)] for first in range(0, 36, 6)]
ROWS = [row for rows in EPOCHS for row in rows]

ODD = OutputTag("odd", PAIR)
BIG = OutputTag("big", Types.LONG())
UNHEARD = OutputTag("unheard")


class Sort(ProcessFunction):
    """Even values go on; odd ones, those above 20 and the keys go aside."""

    def process_element(self, value: tuple[int, int], ctx: ProcessFunction.Context) -> Iterable[Any]:
        if value[1] % 2:
            yield ODD, value
        else:
            yield value
        if value[1] > 20:
            yield BIG, value[1]
        yield UNHEARD, value[0]


class SortFlat(FlatMapFunction):
    def flat_map(self, value: tuple[int, int]) -> Iterable[Any]:
        return Sort().process_element(value, None)  # type: ignore[arg-type]  # not asked for


class SortKeyed(KeyedProcessFunction):
    def process_element(self, value: tuple[int, int], ctx: KeyedProcessFunction.Context) -> Iterable[Any]:
        return Sort().process_element(value, ctx)  # type: ignore[arg-type]  # not asked for


def fail_once(in_process: InProcessEngine, epoch: int) -> None:
    """The job fails in an epoch of its first attempt, after its tasks ran."""

    def fail(spec: EpochSpec) -> None:
        if (spec.attempt, spec.epoch) == (1, epoch):
            raise OSError("the executor is gone")

    in_process.after_epoch = fail


def job(tmp_path: Path, parallelism: int) -> tuple[StreamExecutionEnvironment, DataStream]:
    env = environment(**settings(tmp_path)).set_parallelism(parallelism)
    return env, env.from_source(Scripted(EPOCHS), WatermarkStrategy.no_watermarks(), "script", PAIR)


def write(stream: DataStream, path: Path) -> None:
    stream.sink_to(FileSink(str(path), JsonSinkFormat()))


@pytest.mark.parametrize("parallelism", [1, 2, 5])
@pytest.mark.parametrize("kind", ["process", "flat_map", "keyed"])
@pytest.mark.parametrize("chained", [True, False])
def test_rows_go_where_their_tags_say(
    in_process: InProcessEngine, tmp_path: Path, parallelism: int, kind: str, chained: bool
) -> None:
    fail_once(in_process, 3)
    env, source = job(tmp_path, parallelism)
    if kind == "keyed":
        main = source.key_by(lambda row: row[0], Types.LONG()).process(SortKeyed(), PAIR)
    elif kind == "flat_map":
        main = source.flat_map(SortFlat(), PAIR)
    else:
        main = source.process(Sort(), PAIR)
    if not chained:
        main.disable_chaining()
    write(main, tmp_path / "main")
    write(main.get_side_output(ODD), tmp_path / "odd")
    write(main.get_side_output(ODD).map(lambda row: (row[0], -row[1]), PAIR), tmp_path / "negated")
    big = main.get_side_output(BIG).rebalance().map(lambda value: (value,), Types.TUPLE([Types.LONG()]))
    write(big, tmp_path / "big")
    env.execute()

    assert published(tmp_path / "main") == sorted(row for row in ROWS if row[1] % 2 == 0)
    assert published(tmp_path / "odd") == sorted(row for row in ROWS if row[1] % 2)
    assert published(tmp_path / "negated") == sorted((key, -value) for key, value in ROWS if value % 2)
    assert published(tmp_path / "big") == sorted((value,) for _, value in ROWS if value > 20)
    assert {attempt for attempt, _ in in_process.epochs} == {1, 2}


ASIDE = OutputTag("aside", PAIR)
RULES = MapStateDescriptor("rules", Types.LONG(), Types.LONG())


class ByValue(TimestampAssigner):
    def extract_timestamp(self, value: tuple[int, int], record_timestamp: int) -> int:
        return value[1]


class AtTimers(KeyedProcessFunction):
    def process_element(self, value: tuple[int, int], ctx: KeyedProcessFunction.Context) -> None:
        ctx.timer_service().register_event_time_timer(value[1])

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield ASIDE, (ctx.get_current_key(), timestamp)


class AtTimersOfTwo(KeyedCoProcessFunction):
    process_element1 = process_element2 = AtTimers.process_element
    on_timer = AtTimers.on_timer


class Aside(BroadcastProcessFunction):
    """Rows go aside, and so do broadcast elements, of the first subtask."""

    def open(self, runtime_context: Any) -> None:
        self.first = runtime_context.get_index_of_this_subtask() == 0

    def process_element(self, value: tuple[int, int], ctx: Any) -> Iterable[Any]:
        yield ASIDE, value

    def process_broadcast_element(self, value: tuple[int, int], ctx: Any) -> Iterable[Any]:
        if self.first:
            yield ASIDE, value


class KeyedAside(KeyedBroadcastProcessFunction):
    open = Aside.open
    process_element = Aside.process_element
    process_broadcast_element = Aside.process_broadcast_element


class Held(StreamOperator):
    """Rows go aside before a checkpoint, the last ones at the end."""

    def open(self, runtime_context: Any) -> None:
        self.held: list[Any] = []

    def process_element(self, value: tuple[int, int], ctx: Any) -> None:
        self.held.append(value)

    def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> Iterable[Any]:
        held, self.held = self.held, []
        return [(ASIDE, value) for value in held]

    def finish(self) -> Iterable[Any]:
        return self.prepare_snapshot_pre_barrier(0)


@pytest.mark.parametrize("parallelism", [1, 2, 5])
@pytest.mark.parametrize("kind", ["on_timer", "co on_timer", "broadcast", "keyed broadcast", "operator"])
def test_all_that_yields(in_process: InProcessEngine, tmp_path: Path, parallelism: int, kind: str) -> None:
    fail_once(in_process, 3)
    env, source = job(tmp_path, parallelism)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ByValue())
    times = 1
    if "timer" in kind:
        keyed = source.assign_timestamps_and_watermarks(strategy).key_by(lambda row: row[0], Types.LONG())
        main = keyed.process(AtTimers()) if kind == "on_timer" else keyed.connect(keyed).process(AtTimersOfTwo())
    elif kind == "operator":
        main = source.transform("hold", None, Held())
    else:
        rules, times = source.broadcast(RULES), 2
        if kind == "broadcast":
            main = source.connect(rules).process(Aside())
        else:
            main = source.key_by(lambda row: row[0], Types.LONG()).connect(rules).process(KeyedAside())
    write(main.map(lambda row: row, PAIR), tmp_path / "main")
    write(main.get_side_output(ASIDE), tmp_path / "aside")
    env.execute()
    assert published(tmp_path / "aside") == sorted(ROWS * times)
    assert published(tmp_path / "main") == []


def test_rows_for_tags_that_nobody_listens_to_are_dropped(in_process: InProcessEngine, tmp_path: Path) -> None:
    env, source = job(tmp_path, 2)
    write(source.process(Sort(), PAIR), tmp_path / "main")
    env.execute()
    assert published(tmp_path / "main") == sorted(row for row in ROWS if row[1] % 2 == 0)


def test_a_side_output_is_keyed_connected_and_split_again(in_process: InProcessEngine, tmp_path: Path) -> None:
    fail_once(in_process, 3)
    env, source = job(tmp_path, 2)
    odd = source.process(Sort(), PAIR).get_side_output(ODD)
    counted = odd.key_by("f0").map(lambda row: (row[0], 1), PAIR).key_by(lambda row: row[0], Types.LONG()).sum(1)
    write(counted, tmp_path / "counted")
    write(
        odd.process(Sort(), PAIR).get_side_output(BIG).map(lambda n: (n,), Types.TUPLE([Types.LONG()])),
        tmp_path / "big",
    )
    env.execute()
    odds = [row for row in ROWS if row[1] % 2]
    keys = {key: sum(row[0] == key for row in odds) for key, _ in odds}
    assert published(tmp_path / "counted") == sorted((k, n) for k, total in keys.items() for n in range(1, total + 1))
    assert published(tmp_path / "big") == sorted((value,) for _, value in odds if value > 20)
