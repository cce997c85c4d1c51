"""Functions that use one object for all of their rows, in whole jobs: a row is what it was when it was yielded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Row, TimestampAssigner, Types, WatermarkStrategy
from holdfast.common.time import Time
from holdfast.connectors.file_sink.formats import JsonSinkFormat
from holdfast.datastream import (
    CoMapFunction,
    DataStream,
    FlatMapFunction,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    ProcessWindowFunction,
    StreamOperator,
)
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.state import MapStateDescriptor
from holdfast.datastream.window import TumblingEventTimeWindows
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import PAIR, Scripted, environment, published
from tests.job.counting import settings

ROWS = [(row % 3, row) for row in range(24)]
EPOCHS = [ROWS[:12], ROWS[12:]]
#: Each row is yielded twice: as it came, and negated.
EXPECTED = sorted([*ROWS, *((key, -value) for key, value in ROWS)])

ROW = Types.ROW_NAMED(["key", "value"], [Types.LONG(), Types.LONG()])
ASIDE = OutputTag("aside", ROW)


@dataclass
class Pair:
    key: int
    value: int


@dataclass(frozen=True)
class Kind:
    """A class of rows that can be changed: how one is made and changed, and what it says."""

    declared: Any
    make: Callable[[], Any]
    put: Callable[[Any, int, int], None]
    read: Callable[[Any], tuple[int, int]]


def _put_items(row: Any, key: int, value: int) -> None:
    row[0], row[1] = key, value


def _put_names(row: Any, key: int, value: int) -> None:
    row["key"], row["value"] = key, value


def _put_attributes(row: Any, key: int, value: int) -> None:
    row.key, row.value = key, value


KINDS = {
    "row": Kind(ROW, lambda: Row(key=0, value=0), _put_names, lambda row: (row["key"], row["value"])),
    "list": Kind(Types.LIST(Types.LONG()), lambda: [0, 0], _put_items, lambda row: (row[0], row[1])),
    "map": Kind(Types.MAP(Types.STRING(), Types.LONG()), dict, _put_names, lambda row: (row["key"], row["value"])),
    "dataclass": Kind(Pair, lambda: Pair(0, 0), _put_attributes, lambda row: (row.key, row.value)),
    "undeclared": Kind(None, lambda: [0, 0], _put_items, lambda row: (row[0], row[1])),
}


class Reused:
    """Yields its one row twice."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def open(self, runtime_context: Any) -> None:
        self.row = KINDS[self._kind].make()

    def filled(self, key: int, value: int) -> Any:
        KINDS[self._kind].put(self.row, key, value)
        return self.row

    def both(self, value: tuple[int, int]) -> Iterable[Any]:
        yield self.filled(*value)
        yield self.filled(value[0], -value[1])


class Flat(Reused, FlatMapFunction):
    def flat_map(self, value: tuple[int, int]) -> Iterable[Any]:
        return self.both(value)


class Processed(Reused, ProcessFunction):
    def process_element(self, value: tuple[int, int], ctx: Any) -> Iterable[Any]:
        return self.both(value)


class Keyed(Reused, KeyedProcessFunction):
    def process_element(self, value: tuple[int, int], ctx: Any) -> Iterable[Any]:
        return self.both(value)


class AtTimers(Reused, KeyedProcessFunction):
    def process_element(self, value: tuple[int, int], ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(value[1])

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        return self.both((ctx.get_current_key(), timestamp))


class Windowed(Reused, ProcessWindowFunction):
    def process(self, key: int, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        for element in elements:
            yield from self.both(element)


class Ruled(Reused, KeyedBroadcastProcessFunction):
    def process_element(self, value: tuple[int, int], ctx: Any) -> Iterable[Any]:
        return self.both(value)

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        pass


class AtTheEnd(Reused, StreamOperator):
    """Gives its rows when its input has ended."""

    def open(self, runtime_context: Any) -> None:
        super().open(runtime_context)
        self.seen: list[tuple[int, int]] = []

    def process_element(self, value: tuple[int, int], ctx: Any) -> None:
        self.seen.append(value)

    def finish(self) -> Iterable[Any]:
        for value in self.seen:
            yield from self.both(value)


class Mapped(Reused, MapFunction):
    def map(self, value: tuple[int, int]) -> Any:
        return self.filled(*value)


class Negated(Reused, CoMapFunction):
    """Rows of the first stream as they came, and of the second negated."""

    def map1(self, value: tuple[int, int]) -> Any:
        return self.filled(*value)

    def map2(self, value: tuple[int, int]) -> Any:
        return self.filled(value[0], -value[1])


class ByValue(TimestampAssigner):
    def extract_timestamp(self, value: tuple[int, int], record_timestamp: int) -> int:
        return value[1]


def _keyed(rows: DataStream) -> Any:
    return rows.key_by(lambda row: row[0], Types.LONG())


def _timed(rows: DataStream) -> Any:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ByValue())
    return _keyed(rows.assign_timestamps_and_watermarks(strategy))


def _ruled(rows: DataStream, kind: str, declared: Any) -> Any:
    rules = rows.filter(lambda row: False).broadcast(MapStateDescriptor("rules", Types.LONG(), Types.LONG()))
    return _keyed(rows).connect(rules).process(Ruled(kind), declared)


PROGRAMS: dict[str, Callable[[DataStream, str, Any], DataStream]] = {
    "flat_map": lambda rows, kind, declared: rows.flat_map(Flat(kind), declared),
    "keyed flat_map": lambda rows, kind, declared: _keyed(rows).flat_map(Flat(kind), declared),
    "process": lambda rows, kind, declared: rows.process(Processed(kind), declared),
    "keyed process": lambda rows, kind, declared: _keyed(rows).process(Keyed(kind), declared),
    "timed process": lambda rows, kind, declared: _timed(rows).process(Keyed(kind), declared),
    "on_timer": lambda rows, kind, declared: _timed(rows).process(AtTimers(kind), declared),
    "window": lambda rows, kind, declared: (
        _timed(rows).window(TumblingEventTimeWindows.of(Time.milliseconds(6))).process(Windowed(kind), declared)
    ),
    "broadcast": _ruled,
    "co_map": lambda rows, kind, declared: rows.connect(rows).map(Negated(kind), declared),
    "keyed co_map": lambda rows, kind, declared: _keyed(rows).connect(_keyed(rows)).map(Negated(kind), declared),
    "finish": lambda rows, kind, declared: rows.transform("operator", declared, AtTheEnd(kind)),
}


def _run(tmp_path: Path, program: Callable[[DataStream], DataStream], read: Callable[[Any], Any]) -> list[Any]:
    """What is written behind a function, by one that is chained to it and by one behind an exchange."""
    env = environment(**settings(tmp_path))
    rows = program(env.from_source(Scripted(EPOCHS), WatermarkStrategy.no_watermarks(), "script", PAIR))
    rows.map(read, PAIR).sink_to(FileSink(str(tmp_path / "chained"), JsonSinkFormat()))
    rows.rebalance().map(read, PAIR).sink_to(FileSink(str(tmp_path / "sent"), JsonSinkFormat()))
    env.execute()
    assert published(tmp_path / "chained") == published(tmp_path / "sent")
    return published(tmp_path / "sent")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_every_row_is_as_it_was_yielded(in_process: InProcessEngine, tmp_path: Path, program: str, kind: str) -> None:
    of, make = KINDS[kind], PROGRAMS[program]
    assert _run(tmp_path, lambda rows: make(rows, kind, of.declared), of.read) == EXPECTED


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_row_that_map_returns_again_and_again(
    in_process: InProcessEngine, tmp_path: Path, kind: str, keyed: bool
) -> None:
    of = KINDS[kind]

    def program(rows: DataStream) -> DataStream:
        return (_keyed(rows) if keyed else rows).map(Mapped(kind), of.declared)

    assert _run(tmp_path, program, of.read) == sorted(ROWS)


class ReusedAside(Reused, ProcessFunction):
    def process_element(self, value: tuple[int, int], ctx: Any) -> Iterable[Any]:
        for row in self.both(value):
            yield ASIDE, row
        yield value


def test_rows_of_a_side_output_beside_rows_that_cannot_change(in_process: InProcessEngine, tmp_path: Path) -> None:
    def program(rows: DataStream) -> DataStream:
        return rows.process(ReusedAside("row"), PAIR).get_side_output(ASIDE)

    assert _run(tmp_path, program, KINDS["row"].read) == EXPECTED
