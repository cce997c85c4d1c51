"""Side outputs in whole jobs: from every kind of function that yields, with checkpoints and restarts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Types, WatermarkStrategy
from holdfast.connectors.file_sink.formats import JsonSinkFormat
from holdfast.datastream import (
    DataStream,
    FlatMapFunction,
    KeyedProcessFunction,
    OutputTag,
    ProcessFunction,
    StreamExecutionEnvironment,
)
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.runtime.epoch import EpochSpec
from tests.integration.programs import PAIR, Scripted, environment, published
from tests.spark.in_process import InProcessSpark, settings

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
        return Sort().process_element(value, None)  # type: ignore[arg-type]


class SortKeyed(KeyedProcessFunction):
    def process_element(self, value: tuple[int, int], ctx: KeyedProcessFunction.Context) -> Iterable[Any]:
        return Sort().process_element(value, ctx)  # type: ignore[arg-type]


def fail_once(in_process: InProcessSpark, epoch: int) -> None:
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
    in_process: InProcessSpark, tmp_path: Path, parallelism: int, kind: str, chained: bool
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
