"""What a program may ask of its environment before it runs."""

import logging

import pytest

from holdfast.common import Configuration, WatermarkStrategy
from holdfast.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from holdfast.datastream.connectors import NumberSequenceSource
from holdfast.errors import ProgramError


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


def test_the_mode_of_a_program_is_streaming(env):
    assert env.set_runtime_mode(RuntimeExecutionMode.STREAMING) is env


@pytest.mark.parametrize("mode", [RuntimeExecutionMode.BATCH, RuntimeExecutionMode.AUTOMATIC])
def test_modes_with_other_results_are_refused(env, mode):
    with pytest.raises(ProgramError, match=r"Set RuntimeExecutionMode\.STREAMING"):
        env.set_runtime_mode(mode)


def test_a_source_strategy_without_assigner_gives_no_event_time_and_says_so(env, caplog):
    with caplog.at_level(logging.WARNING, logger="holdfast"):
        stream = env.from_source(NumberSequenceSource(1, 2), WatermarkStrategy.for_monotonous_timestamps(), "numbers")
    assert stream.get_name() == "numbers"
    assert "'numbers' has no timestamp assigner" in caplog.text


def test_what_is_no_source_is_refused_with_one_that_is(env):
    with pytest.raises(ProgramError, match=r"FileSource\.parquet\(path\); got list"):
        env.from_source([1], WatermarkStrategy.no_watermarks(), "numbers")


def test_batch_mode_of_a_configuration_file_is_refused() -> None:
    configuration = Configuration.from_dict({"execution.runtime-mode": "batch"})
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.from_collection([1]).print()
    with pytest.raises(ProgramError, match="STREAMING"):
        env.execute()
