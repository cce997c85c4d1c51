"""What a program is held to, and what its functions are given: settings of ``env.get_config()`` in whole programs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Duration, TimestampColumn, Types, WatermarkStrategy
from holdfast.datastream import KeyedProcessFunction, MapFunction, RuntimeContext, StreamExecutionEnvironment
from holdfast.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from holdfast.datastream.window import TumblingEventTimeWindows
from holdfast.errors import JobExecutionError, ProgramError
from holdfast.graph.job_graph import build_job_graph, operator_id_of_uid
from holdfast.runtime.epoch import EpochSpec
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import PAIR, Scripted, environment
from tests.job.counting import settings


class Told(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        get = runtime_context.get_job_parameter
        self.told = [get("rate", "none"), get("parallelism.default", "none"), *runtime_context.get_job_parameters()]

    def map(self, value: int) -> str:
        return " ".join(self.told)


def test_functions_are_told_the_global_parameters_and_nothing_else_of_the_configuration(
    in_process: InProcessEngine,
) -> None:
    env = environment()
    env.get_config().set_global_job_parameters({"rate": 3})
    assert list(env.from_collection([1]).map(Told()).execute_and_collect()) == ["3 none rate"]


# -- uids


def test_without_auto_generated_uids_operators_that_lack_one_are_named(in_process: InProcessEngine) -> None:
    env = environment()
    env.get_config().disable_auto_generated_uids()
    env.from_collection([1]).map(lambda one: one).name("Doubles").uid("doubles").print()
    with pytest.raises(ProgramError, match="operators have no uid: 'Collection Source', 'Print'"):
        env.execute()


def test_what_the_program_cannot_name_needs_no_uid(in_process: InProcessEngine) -> None:
    env = environment()
    env.get_config().disable_auto_generated_uids()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(TimestampColumn(0))
    rows = env.from_source(Scripted([[(1, 2)]]), strategy, "numbers", PAIR).uid("numbers")
    others = env.from_collection([(7, 8)], PAIR).set_uid_hash("a" * 32)
    assert sorted(rows.union(others).execute_and_collect()) == [(1, 2), (7, 8)]


def test_a_source_is_found_by_the_uid_of_its_watermarks_wherever_it_stands(tmp_path: Path) -> None:
    """The strategy is an operator of its own here, and for the program they are one."""

    def ids(ahead: int) -> set[str]:
        env = environment()
        env.get_config().disable_auto_generated_uids()
        for number in range(ahead):
            env.from_collection([number]).uid(f"ahead-{number}").print().uid(f"print-{number}")
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(TimestampColumn(0))
        env.from_source(Scripted([]), strategy, "numbers", PAIR).uid("numbers").print().uid("print")
        graph = build_job_graph(env.get_stream_graph(), "job", "job", env.job_settings(), 1)
        return {operator.operator_id for operator in graph.operators}

    assert len(ids(0)) == 3 and ids(0) < ids(2)
    assert operator_id_of_uid("numbers-source") in ids(0)


# -- types


def undeclared(env: StreamExecutionEnvironment) -> None:
    keyed = env.from_collection([(1, 2)], PAIR).key_by(lambda row: row[0])
    keyed.map(lambda row: row[1]).name("Values").filter(bool).print()


def test_without_generic_types_rows_that_would_be_pickled_are_named(in_process: InProcessEngine) -> None:
    env = environment()
    env.get_config().disable_generic_types()
    undeclared(env)
    with pytest.raises(ProgramError) as refused:
        env.execute()
    told = str(refused.value)
    assert "rows of 'Values': give it output_type" in told and "rows of 'Collection Source'" not in told


def test_without_generic_types_a_declared_program_runs(in_process: InProcessEngine) -> None:
    env = environment()
    env.get_config().disable_generic_types()
    rows = env.from_collection([(1, 2), (1, 3)], PAIR).key_by(lambda row: row[0])
    assert list(rows.reduce(lambda one, two: (one[0], one[1] + two[1])).execute_and_collect()) == [(1, 2), (1, 5)]


class Keeps(KeyedProcessFunction):
    def __init__(self, *descriptors: Any) -> None:
        self.descriptors = descriptors

    def open(self, runtime_context: RuntimeContext) -> None:
        for descriptor in self.descriptors:
            kind = "state" if isinstance(descriptor, ValueStateDescriptor) else f"{descriptor.kind}_state"
            getattr(runtime_context, f"get_{kind}")(descriptor)

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield value


@pytest.mark.parametrize(
    ("descriptor", "declared"),
    [
        (ValueStateDescriptor("kept"), False),
        (ListStateDescriptor("kept", Types.PICKLED_BYTE_ARRAY()), False),
        (MapStateDescriptor("kept", Types.LONG(), None), False),
        (MapStateDescriptor("kept", None, Types.LONG()), True),
        (ValueStateDescriptor("kept", Types.LONG()), True),
    ],
)
def test_without_generic_types_state_of_functions_must_be_declared(
    in_process: InProcessEngine, descriptor: Any, declared: bool
) -> None:
    env = environment()
    env.get_config().disable_generic_types()
    rows = env.from_collection([(1, 2)], PAIR).key_by(lambda row: row[0])
    kept = rows.process(Keeps(descriptor), PAIR).name("Keeps")
    if declared:
        assert list(kept.execute_and_collect()) == [(1, 2)]
        return
    with pytest.raises(JobExecutionError) as failed:
        list(kept.execute_and_collect())
    told = str(failed.value.__cause__ or failed.value)
    assert "generic types are disabled" in told and "'kept'" in told and "'Keeps'" in told


# -- watermarks


def windows(env: StreamExecutionEnvironment, epochs: list[list[tuple[int, int]]]) -> Any:
    """The number of rows of each window of ten milliseconds; late rows are dropped."""
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(TimestampColumn(1))
    rows = env.from_source(Scripted(epochs), strategy, "script", PAIR).set_parallelism(1).key_by(lambda row: row[0])
    windowed = rows.window(TumblingEventTimeWindows.of(Duration.of_millis(10)))
    return windowed.reduce(lambda one, two: (one[0], max(one[1], two[1]))).execute_and_collect()


LATE = [[(1, 5)], [(1, 25)], [(1, 6)], [(1, 35)]]


def test_rows_are_late_by_the_watermarks_that_were_made(in_process: InProcessEngine) -> None:
    assert sorted(windows(environment(), LATE)) == [(1, 5), (1, 25), (1, 35)]
    never = environment()
    never.get_config().set_auto_watermark_interval(0)
    assert sorted(windows(never, LATE)) == [(1, 6), (1, 25), (1, 35)]
    seldom = environment()
    seldom.get_config().set_auto_watermark_interval(10**9)
    assert sorted(windows(seldom, LATE)) == [(1, 6), (1, 25), (1, 35)]


@pytest.mark.parametrize("interval", [1_000, 30_000])
def test_a_job_that_fails_gives_the_same_windows(in_process: InProcessEngine, tmp_path: Path, interval: int) -> None:
    epochs = [[(key, 10 * epoch + key) for key in range(3)] for epoch in range(12)]

    def fail(spec: EpochSpec) -> None:
        if (spec.attempt, spec.epoch) in ((1, 3), (2, 7)):
            raise OSError("the executor is gone")

    in_process.before_epoch = fail
    env = environment(**settings(tmp_path))
    env.get_config().set_auto_watermark_interval(interval)
    assert sorted(windows(env, epochs)) == sorted((key, 10 * epoch + key) for key in range(3) for epoch in range(12))
    assert {attempt for attempt, _ in in_process.epochs} == {1, 2, 3}
