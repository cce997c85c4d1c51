"""The public names of holdfast.common, with PyFlink's module paths."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
from datetime import timedelta

import pytest

from holdfast.common import (
    Configuration,
    Duration,
    Encoder,
    Instant,
    JobStatus,
    RestartStrategies,
    SimpleStringSchema,
    Time,
    TimestampAssigner,
    WatermarkStrategy,
)
from holdfast.common.job_execution_result import JobExecutionResult
from holdfast.common.settings_parser import parse_settings
from holdfast.errors import ConfigurationError, ProgramError
from holdfast.job.function_metrics import FunctionMetrics
from holdfast.job.job import JobHistory
from holdfast.job.job import JobStatus as MasterStatus
from holdfast.types.settings import (
    ExponentialDelaySettings,
    FailureRateSettings,
    FixedDelaySettings,
    NoRestartSettings,
)


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("configuration", ["Configuration"]),
        ("job_client", ["JobClient"]),
        ("job_execution_result", ["JobExecutionResult"]),
        ("job_id", ["JobID"]),
        ("job_status", ["JobStatus"]),
        ("restart_strategy", ["RestartStrategies", "RestartStrategyConfiguration"]),
        ("serialization", ["Encoder", "SimpleStringSchema", "SerializationSchema", "DeserializationSchema"]),
        ("time", ["Time", "Duration", "Instant"]),
        ("typeinfo", ["Types", "TypeInformation", "RowTypeInfo", "TupleTypeInfo", "ListTypeInfo", "MapTypeInfo"]),
        ("types", ["Row", "RowKind"]),
        ("watermark_strategy", ["WatermarkStrategy", "TimestampAssigner"]),
    ],
)
def test_names_are_where_pyflink_has_them(module, names):
    found = importlib.import_module(f"holdfast.common.{module}")
    assert all(hasattr(found, name) for name in names)


def test_importing_it_does_not_import_pyspark():
    program = "import sys, holdfast.common; print(any(name.startswith('pyspark') for name in sys.modules))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"


def test_lengths_of_time():
    assert Duration.of_days(1) == Duration.of_hours(24) == Duration.of_minutes(1440) == Duration.of_seconds(86_400)
    assert Duration.of_seconds(2).to_millis() == Duration.of_millis(2_000).to_millis() == 2_000
    assert Duration.of_nanos(1_999_999).to_millis() == 1
    assert Time.days(1) == Time.hours(24) == Time.minutes(1440) == Time.seconds(86_400) == Time.milliseconds(86_400_000)
    assert Time.seconds(3).to_milliseconds() == 3_000


@pytest.mark.parametrize("millis", [0, 1, 999, 1_500, -1, -1_500])
def test_instants(millis):
    instant = Instant.of_epoch_milli(millis)
    assert instant.to_epoch_milli() == millis
    assert 0 <= instant.nanos < 1_000_000_000
    assert Instant.of_epoch_nano(instant.to_epoch_nano()) == instant


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def test_watermark_strategies_are_values():
    plain = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
    strategy = plain.with_timestamp_assigner(SecondField()).with_idleness(Duration.of_minutes(1))
    assert (strategy.bound_ms, strategy.idleness_ms) == (5_000, 60_000)
    assert strategy.timestamp_assigner.extract_timestamp(("a", 7), -1) == 7
    assert plain.timestamp_assigner is None
    assert WatermarkStrategy.for_monotonous_timestamps().bound_ms == 0
    assert WatermarkStrategy.no_watermarks().bound_ms is None
    assert pickle.loads(pickle.dumps(plain)) == plain


def test_impossible_watermark_strategies_are_refused():
    with pytest.raises(ProgramError, match="must not be negative"):
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(-1))
    with pytest.raises(ProgramError, match="must be above 0"):
        WatermarkStrategy.no_watermarks().with_idleness(Duration.of_millis(0))
    with pytest.raises(ProgramError, match="extract_timestamp"):
        WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda value: 1)


@pytest.mark.parametrize(
    ("strategy", "settings"),
    [
        (RestartStrategies.no_restart(), NoRestartSettings()),
        (RestartStrategies.fixed_delay_restart(3, 10_000), FixedDelaySettings(3, 10_000)),
        (RestartStrategies.fixed_delay_restart(3, timedelta(seconds=1.5)), FixedDelaySettings(3, 1_500)),
        (RestartStrategies.fixed_delay_restart(3, Duration.of_seconds(2)), FixedDelaySettings(3, 2_000)),
        (RestartStrategies.fixed_delay_restart(3, Time.seconds(2)), FixedDelaySettings(3, 2_000)),
        (RestartStrategies.failure_rate_restart(2, 5_000, 100), FailureRateSettings(2, 5_000, 100)),
        (
            RestartStrategies.exponential_delay_restart(100, 1_000, 2.0, 60_000, 0.0),
            ExponentialDelaySettings(100, 1_000, 2.0, 60_000, 0.0),
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_restart_strategies_replace_what_is_configured(strategy, settings):
    configuration = Configuration.from_dict(
        {"restart-strategy": "failure-rate", "Restart-Strategy.fixed-delay.delay": "9 s"}
    )
    strategy.apply_to(configuration)
    assert parse_settings(configuration).restart == settings
    assert strategy.get_description()


def test_falling_back_leaves_it_to_the_file():
    program = Configuration.from_dict({"restart-strategy": "none"})
    RestartStrategies.fall_back_restart().apply_to(program)
    merged = program.layered_over(Configuration.from_dict({"restart-strategy": "fixed-delay"}))
    assert parse_settings(merged).restart == FixedDelaySettings()


def test_impossible_restart_strategies_are_refused():
    with pytest.raises(ConfigurationError, match=r"fixed-delay.attempts' is '-1'; expected a value of at least 0"):
        RestartStrategies.fixed_delay_restart(-1, 1)
    with pytest.raises(ConfigurationError, match="'soon' is not a length of time"):
        RestartStrategies.fixed_delay_restart(1, "soon")


def test_strings_as_bytes_and_lines():
    schema = SimpleStringSchema("UTF-16-LE")
    assert schema.deserialize(schema.serialize("ä")) == "ä"
    assert Encoder.simple_string_encoder().encode((1, "a")) == "(1, 'a')"


def test_job_states_have_pyflinks_numbers():
    assert [JobStatus.CREATED.value, JobStatus.FINISHED.value, JobStatus.RECONCILING.value] == [0, 6, 9]
    assert {status for status in JobStatus if status.is_globally_terminal} == {
        JobStatus.FAILED,
        JobStatus.CANCELED,
        JobStatus.FINISHED,
    }
    assert all(status.name in JobStatus.__members__ for status in MasterStatus)


def test_the_result_of_a_job():
    history = JobHistory(timestamps={MasterStatus.CREATED: 10.0, MasterStatus.FINISHED: 12.5})
    result = JobExecutionResult("abc", history, FunctionMetrics())
    assert (str(result.get_job_id()), result.get_net_runtime()) == ("abc", 2_500)
    assert result.get_job_execution_result() is result and result.is_job_execution_result()
    assert result.get_accumulator_result("any") is None
    assert str(result) == "Job abc finished after 2500 ms"
    assert JobExecutionResult("abc", JobHistory(), FunctionMetrics()).get_net_runtime() == 0
