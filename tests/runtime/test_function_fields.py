"""Fields of functions when another process goes on with them: the same object has them, however it is reached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Types, WatermarkStrategy
from holdfast.common.watermark_strategy import TimestampAssigner
from holdfast.datastream import MapFunction, StreamExecutionEnvironment
from holdfast.runtime.contracts import WrappingFunction
from tests.graph.restored_jobs import StoredJob, environment
from tests.integration.programs import Scripted
from tests.runtime.local_job import ListSink


class Counting(MapFunction):
    count = 0

    def map(self, value: int) -> int:
        self.count += 1
        return self.count


@dataclass(slots=True)
class InSlots(MapFunction):
    count: int = 0

    def map(self, value: int) -> int:
        self.count += 1
        return self.count


class ByItsOwnMethods(Counting):
    """Keeps methods of its own in a field."""

    def __init__(self) -> None:
        self.handlers: dict[str, Callable[[int], int]] = {"number": super().map}

    def map(self, value: int) -> int:
        self.handlers["number"](value)
        return self.count


class Renaming(WrappingFunction, MapFunction):
    """Keeps what it wraps under a name of its own too."""

    def __init__(self, wrapped_function: Any) -> None:
        super().__init__(wrapped_function)
        self.inner = wrapped_function

    def map(self, value: int) -> int:
        self.inner.map(value)
        return int(self.wrapped_function.count)

    @property
    def count(self) -> int:
        return int(self.wrapped_function.count)


FUNCTIONS = [ByItsOwnMethods(), Renaming(Counting()), Renaming(Renaming(Counting())), InSlots(), Renaming(InSlots())]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_fields_are_those_of_one_function_however_it_is_reached(tmp_path: Path, function: Any) -> None:
    def build(env: StreamExecutionEnvironment) -> None:
        source = Scripted([[7], [7], [7]], ends=True)
        numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
        numbers.map(function, Types.LONG()).sink_to(ListSink())

    job = StoredJob(environment(build, parallelism=1), tmp_path)
    counted: list[int] = []
    for _ in range(3):
        counted += job.rows()
        job.close()
    assert counted == [1, 2, 3]


class Numbering(TimestampAssigner):
    """The time of a row is its number."""

    rows = 0

    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        self.rows += 1
        return self.rows


def test_a_timestamp_assigner_remembers_rows(tmp_path: Path) -> None:
    def build(env: StreamExecutionEnvironment) -> None:
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Numbering())
        env.from_source(Scripted([[7], [7], [7]], ends=False), strategy, "numbers", Types.LONG()).sink_to(ListSink())

    job = StoredJob(environment(build, parallelism=1), tmp_path)
    watermarks: list[int] = []
    for _ in range(3):
        watermarks += [max(progress.watermark for a in job.run() for progress in a.progress)]
        job.close()
    assert watermarks == [0, 1, 2]
