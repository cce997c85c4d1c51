"""Metrics and accumulators of whole jobs: what counts is what accepted epochs of the last attempt brought."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Configuration, Types
from holdfast.common.accumulators import DoubleCounter, IntCounter
from holdfast.datastream import (
    BroadcastProcessFunction,
    MapFunction,
    Partitioner,
    RuntimeContext,
    SinkFunction,
    StreamExecutionEnvironment,
)
from holdfast.datastream.state import MapStateDescriptor
from holdfast.errors import EpochError, ProgramError
from holdfast.job.function_metrics import FunctionMetrics
from holdfast.runtime.epoch import Acknowledgement, EpochSpec
from holdfast.runtime.live_task import forget_live_tasks
from holdfast.runtime.metric_values import MetricValue, OperatorMetrics
from holdfast.testing.in_process import InProcessEngine
from tests.integration.counted_job import audit, readings, start

ROWS = 400
SETTINGS = {"execution.checkpointing.interval": "10 ms", "holdfast.epoch.idle-wait": "1 ms"}


@pytest.mark.parametrize("seed", range(6))
def test_failures_repeated_executions_and_other_processes(
    in_process: InProcessEngine, tmp_path: Path, seed: int
) -> None:
    chosen = random.Random(seed)
    #: The first epochs, so that something is left to count behind the last failure.
    failures = chosen.sample(range(2, 9), 2)
    ran = 0

    def before(spec: EpochSpec) -> None:
        nonlocal ran
        ran += 1
        if chosen.random() < 0.4:
            forget_live_tasks("counted")
        if ran == failures[0]:
            raise EpochError("a worker was lost")

    def after(spec: EpochSpec) -> None:
        if ran == failures[1]:
            raise EpochError("the driver never heard of it")

    def repeated(spec: EpochSpec) -> list[tuple[int, int]]:
        return [(level, slot) for level in (0, 1) for slot in (0, 1) if chosen.random() < 0.3]

    in_process.before_epoch, in_process.after_epoch, in_process.repeated = before, after, repeated
    client = start(tmp_path, SETTINGS, ROWS)
    counted = audit(client, tmp_path, ROWS)
    assert client.get_history().restarts == 2
    assert 0 < counted < ROWS


def test_without_a_failure_everything_is_counted(in_process: InProcessEngine, tmp_path: Path) -> None:
    client = start(tmp_path, SETTINGS, ROWS)
    assert audit(client, tmp_path, ROWS) == ROWS
    assert client.get_accumulators().result()["total"] == sum(range(ROWS))
    assert {each["last"] for each in readings(client, "place")} <= set(range(ROWS))
    client.get_execution_graph().begin_attempt(2)
    assert readings(client, "mark") == []
    assert client.get_accumulators().result() == {}


class Counting:
    """What the functions below share."""

    def count_in(self, runtime_context: RuntimeContext) -> None:
        self.rows = runtime_context.get_metrics_group().counter("rows")


class Fan(Partitioner, Counting):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.routed = runtime_context.get_metrics_group().add_group("partitioner").counter("routed")

    def partition(self, key: int, num_partitions: int) -> int:
        self.routed.inc()
        return key % num_partitions


class Tagged(BroadcastProcessFunction, Counting):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count_in(runtime_context)
        self.rules = runtime_context.get_metrics_group().counter("rules")

    def process_element(self, value: int, ctx: Any) -> Iterator[int]:
        self.rows.inc()
        yield value

    def process_broadcast_element(self, value: int, ctx: Any) -> Iterator[int]:
        self.rules.inc()
        return iter(())


class Written(SinkFunction, Counting):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count_in(runtime_context)

    def invoke(self, value: int, context: Any) -> None:
        self.rows.inc()


def test_partitioners_broadcast_functions_and_sinks(in_process: InProcessEngine, tmp_path: Path) -> None:
    in_process.before_epoch = lambda spec: forget_live_tasks("others")
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration.from_dict({**SETTINGS, "holdfast.job-id": "others", "holdfast.epoch.max-rows": "4"})
    ).set_parallelism(2)
    numbers = env.from_collection(list(range(20)), Types.LONG())
    rules = env.from_collection([1, 2, 3], Types.LONG()).broadcast(
        MapStateDescriptor("rules", Types.LONG(), Types.LONG())
    )
    routed = numbers.map(lambda n: n, Types.LONG()).name("routing").partition_custom(Fan(), lambda n: n)
    tagged = routed.connect(rules).process(Tagged(), Types.LONG()).name("tagged")
    tagged.add_sink(Written()).name("written")
    client = env.execute_async("others")
    client.get_job_execution_result().result()
    assert len(in_process.epochs) > 4
    assert sum(each["routed"] for each in readings(client, "routing")) == 20
    assert sum(each["rows"] for each in readings(client, "tagged")) == 20
    assert [each["rules"] for each in readings(client, "tagged")] == [3, 3]
    assert sum(each["rows"] for each in readings(client, "written")) == 20


class Adding(MapFunction):
    def __init__(self, kind: Any) -> None:
        self.kind = kind

    def open(self, runtime_context: RuntimeContext) -> None:
        self.total = self.kind()
        runtime_context.add_accumulator("total", self.total)

    def map(self, value: int) -> int:
        self.total.add(value)
        return value


@pytest.mark.parametrize("kind", [IntCounter, DoubleCounter])
def test_operators_share_an_accumulator_of_one_kind(in_process: InProcessEngine, kind: Any) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    stream = env.from_collection([1, 2, 3], Types.LONG())
    stream.map(Adding(IntCounter), Types.LONG()).map(Adding(kind), Types.LONG()).print()
    result = env.execute()
    if kind is IntCounter:
        assert result.get_accumulator_result("total") == 12
        assert result.get_accumulator_result("other") is None
    else:
        with pytest.raises(ProgramError, match="'total' is of two kinds, "):
            result.get_all_accumulator_results()


def test_warnings_of_metrics_are_those_of_the_job(in_process: InProcessEngine, tmp_path: Path) -> None:
    settings = {**SETTINGS, "holdfast.metrics.max-per-subtask": "1"}
    client = start(tmp_path, settings, 20)
    client.get_job_execution_result().result()
    (mark, place) = sorted(client.get_history().warnings)
    assert mark.startswith("operator 'mark': the distribution 'kind.numbers.size' and all that come behind it")
    assert place.startswith("operator 'place': the gauge 'last' and all that come behind it")


# -- rates


def meter(count: int, seconds: int = 60) -> list[Acknowledgement]:
    value = MetricValue((), "m", "meter", count, seconds)
    return [Acknowledgement(0, 0, 0, 1, "n", {}, metrics=(OperatorMetrics("o", 0, (value,)),))]


def test_a_rate_is_of_its_span() -> None:
    now = 1_000_000
    metrics = FunctionMetrics(lambda: now)

    def rate() -> Any:
        (reading,) = metrics.of_subtask("o", 0)
        return reading.values[""]

    metrics.take_in(meter(60))
    assert rate() == 1.0
    now += 30_000
    metrics.take_in(meter(180))
    assert rate() == 3.0
    now += 29_999
    assert rate() == 3.0
    now += 1
    assert rate() == 2.0
    now += 30_000
    assert rate() == 0.0
    metrics.take_in(meter(240))
    assert rate() == 1.0
    metrics.begin_attempt()
    assert metrics.of_subtask("o", 0) == []


@pytest.mark.parametrize(("seconds", "span"), [(1, 5), (7, 5), (60, 60), (63, 60)])
def test_a_span_is_of_five_seconds_each(seconds: int, span: int) -> None:
    metrics = FunctionMetrics(lambda: 0)
    metrics.take_in(meter(600, seconds))
    assert metrics.of_subtask("o", 0)[0].values == {"": 600 / span, "_count": 600}
