"""Streams of earlier executions."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.common import Types
from holdfast.datastream import StreamExecutionEnvironment
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import environment
from tests.job.counting import settings


@pytest.fixture
def env(in_process: InProcessEngine, tmp_path: Path) -> StreamExecutionEnvironment:
    given = settings(tmp_path)
    del given["holdfast.job-id"]
    return environment(**given)


def test_a_stream_is_used_in_several_executions(env: StreamExecutionEnvironment) -> None:
    """What leads to it comes along, once; sinks of the execution before do not."""
    numbers = env.from_collection([1, 2, 3], Types.LONG())
    doubled = numbers.map(lambda number: 2 * number, Types.LONG())
    assert sorted(doubled.execute_and_collect()) == [2, 4, 6]
    assert env.get_stream_graph().nodes == []
    more = env.from_collection([10], Types.LONG())
    together = doubled.union(numbers, more).map(lambda number: number, Types.LONG())
    names = [node.name for node in env.get_stream_graph().nodes]
    assert sorted(names) == ["Collection Source", "Collection Source", "Map", "Map", "Union"]
    assert sorted(together.execute_and_collect()) == [1, 2, 2, 3, 4, 6, 10]
    assert sorted(doubled.execute_and_collect()) == [2, 4, 6]


def test_state_is_not_shared_between_executions(env: StreamExecutionEnvironment) -> None:
    sums = env.from_collection([1, 2], Types.LONG()).key_by(lambda number: 0, Types.LONG()).sum(0)
    for _ in range(2):
        assert list(sums.execute_and_collect()) == [1, 3]
