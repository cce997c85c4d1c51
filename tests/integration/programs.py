"""Programs in PyFlink's style, and what they must give."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from holdfast.common import Configuration, Types
from holdfast.datastream import FlatMapFunction, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from holdfast.datastream.state import ValueStateDescriptor
from holdfast.runtime.batch import Batch
from holdfast.runtime.source import ReaderContext, ReadLimit, Source, SourceReader

PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])


def environment(**settings: Any) -> StreamExecutionEnvironment:
    """An environment of parallelism 2. A failure ends the job unless a test says otherwise, so that it is seen."""
    given = {"restart-strategy.type": "none", **settings}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(given))
    return env.set_parallelism(2)


class CountWithKeyedState(FlatMapFunction):
    """The average of every three values of a key, by integer division."""

    def __init__(self) -> None:
        self.sum: Any = None

    def open(self, runtime_context: RuntimeContext) -> None:
        self.sum = runtime_context.get_state(ValueStateDescriptor("average", PAIR))

    def flat_map(self, value: tuple[int, int]) -> Iterable[tuple[int, int]]:
        current = self.sum.value()
        if current is None:
            current = (0, 0)
        current = (current[0] + 1, current[1] + value[1])
        self.sum.update(current)
        if current[0] >= 3:
            self.sum.clear()
            yield value[0], current[1] // current[0]


def averages(rows: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """What ``CountWithKeyedState`` must give, in any order."""
    waiting: dict[int, list[int]] = defaultdict(list)
    out = []
    for key, value in rows:
        waiting[key].append(value)
        if len(waiting[key]) == 3:
            out.append((key, sum(waiting.pop(key)) // 3))
    return sorted(out)


class CountUntilTimer(KeyedProcessFunction):
    """Counts rows of a key, and emits (key, count, timer) when event time reaches the end of the row's minute."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: tuple[int, int], ctx: KeyedProcessFunction.Context) -> None:
        self.count.update((self.count.value() or 0) + 1)
        timestamp = ctx.timestamp()
        assert timestamp == value[1]
        ctx.timer_service().register_event_time_timer(timestamp - timestamp % 60_000 + 60_000)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[tuple[int, int, int]]:
        yield ctx.get_current_key(), self.count.value(), timestamp


class Scripted(Source):
    """Gives one list of rows per epoch, then nothing; ends only if told to. One subtask."""

    bounded = False
    max_parallelism = 1

    def __init__(self, epochs: list[list[Any]], ends: bool = True) -> None:
        self.epochs = epochs
        self.ends = ends

    def output_type(self) -> Any:
        return None

    def position_type(self) -> Any:
        return int

    def create_reader(self, context: ReaderContext) -> SourceReader:
        position = context.restored[0] if context.restored else 0
        return ScriptedReader(self.epochs, position, self.ends)


class ScriptedReader(SourceReader):
    def __init__(self, epochs: list[list[Any]], position: int, ends: bool) -> None:
        self._epochs, self._position, self._ends = epochs, position, ends
        self.ended = ends and position >= len(epochs)

    def read(self, limit: ReadLimit) -> Iterator[Batch]:
        if self._position < len(self._epochs):
            rows = self._epochs[self._position]
            self._position += 1
            if rows:
                yield Batch(rows)
        self.ended = self._ends and self._position >= len(self._epochs)

    def positions(self) -> list[int]:
        return [self._position]


def published(directory: Path) -> list[tuple[Any, ...]]:
    """All rows that a reader of a JSON sink's directory sees, sorted."""
    files = [path for path in directory.glob("*") if path.is_file() and path.name[0] not in "._"]
    return sorted(tuple(json.loads(line).values()) for path in files for line in path.read_text().splitlines())
