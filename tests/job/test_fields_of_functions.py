"""Fields of functions that cannot get from one worker process to the next."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import WatermarkStrategy
from holdfast.datastream import CheckpointedFunction, MapFunction, RuntimeContext
from holdfast.errors import JobExecutionError
from holdfast.runtime.live_task import forget_live_tasks
from holdfast.runtime.source import Batch, ReadLimit, SourceReader
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import Scripted, environment
from tests.job.counting import settings


class Connected(MapFunction, CheckpointedFunction):
    """Holds what cannot be pickled: a generator."""

    def __init__(self, made_in: str) -> None:
        self.made_in = made_in
        self.connection: Any = None

    def _make(self, where: str) -> None:
        if self.made_in in (where, "both"):
            self.connection = (number for number in range(1000))

    def initialize_state(self, context: Any) -> None:
        self._make("initialize_state")

    def open(self, runtime_context: RuntimeContext) -> None:
        self._make("open")

    def snapshot_state(self, context: Any) -> None:
        """Nothing is kept."""

    def map(self, value: int) -> int:
        next(self.connection)
        return value


def run(tmp_path: Path, function: Connected) -> list[Any]:
    env = environment(**settings(tmp_path))
    source = env.from_source(Scripted([[1], [2], [3]]), WatermarkStrategy.no_watermarks(), "script")
    with source.map(function).execute_and_collect() as rows:
        return sorted(rows)


@pytest.mark.parametrize("made_in", ["open", "both"])
def test_what_open_makes_is_made_again(in_process: InProcessEngine, tmp_path: Path, made_in: str) -> None:
    # Every epoch runs in a process that has nothing of the one before.
    in_process.before_epoch = lambda spec: forget_live_tasks("job")
    assert run(tmp_path, Connected(made_in)) == [1, 2, 3]


def test_what_only_initialize_state_makes_is_refused(in_process: InProcessEngine, tmp_path: Path) -> None:
    with pytest.raises(JobExecutionError, match=r"the field 'connection', which initialize_state\(\) made") as failed:
        run(tmp_path, Connected("initialize_state"))
    assert "Make it in open()" in str(failed.value)
    assert in_process.epochs == [], "no epoch counts that another worker could not go on from"


class OpenReader(SourceReader):
    def __init__(self) -> None:
        self.connection = (number for number in range(3))

    def read(self, limit: ReadLimit) -> Iterator[Batch]:
        yield Batch([next(self.connection)])

    def positions(self) -> list[int]:
        return []


class OpenSource(Scripted):
    def create_reader(self, context: Any) -> SourceReader:
        return OpenReader()


def test_a_reader_that_cannot_be_pickled_is_refused(in_process: InProcessEngine, tmp_path: Path) -> None:
    env = environment(**settings(tmp_path))
    env.from_source(OpenSource([]), WatermarkStrategy.no_watermarks(), "open").print()
    with pytest.raises(JobExecutionError, match=r"'_reader'.*leave what cannot be pickled out in its __getstate__"):
        env.execute("job")
