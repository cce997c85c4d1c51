"""What a program may ask of its environment before it runs."""

import logging

import pytest

from holdfast.common import WatermarkStrategy
from holdfast.datastream import StreamExecutionEnvironment
from holdfast.datastream.connectors import NumberSequenceSource
from holdfast.errors import ProgramError


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


def test_a_source_strategy_without_assigner_gives_no_event_time_and_says_so(env, caplog):
    with caplog.at_level(logging.WARNING, logger="holdfast"):
        stream = env.from_source(NumberSequenceSource(1, 2), WatermarkStrategy.for_monotonous_timestamps(), "numbers")
    assert stream.get_name() == "numbers"
    assert "'numbers' has no timestamp assigner" in caplog.text


def test_what_is_no_source_is_refused_with_one_that_is(env):
    with pytest.raises(ProgramError, match=r"FileSource\.parquet\(path\); got list"):
        env.from_source([1], WatermarkStrategy.no_watermarks(), "numbers")
