"""Metrics and accumulators of one function: what they say, and how they get to the process of the next epoch."""

from __future__ import annotations

import threading
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
import pytest

from holdfast.common.accumulators import (
    AverageAccumulator,
    DoubleCounter,
    Histogram,
    IntCounter,
    LongCounter,
)
from holdfast.datastream import (
    CoProcessFunction,
    MapFunction,
    ProcessWindowFunction,
    RuntimeContext,
)
from holdfast.datastream.window import GlobalWindows, Trigger, TriggerResult
from holdfast.errors import ProgramError
from holdfast.runtime.epoch import Acknowledgement
from holdfast.runtime.metric_registry import MetricRegistry
from holdfast.runtime.metric_values import DistributionValue, MetricId, plain
from holdfast.testing import ConnectedHarness, OperatorHarness, WindowHarness


class Measured(MapFunction):
    """All kinds, held in fields, and one that is asked for at every row."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.group = runtime_context.get_metrics_group()
        self.rows = self.group.counter("rows")
        self.events = self.group.add_group("shop", "north").meter("events", 10)
        self.sizes = self.group.add_group("rows").add_group("seen").distribution("size")
        self.last = 0
        self.group.gauge("last", lambda: self.last)
        self.total = IntCounter()
        runtime_context.add_accumulator("total", self.total)

    def map(self, value: int) -> int:
        self.rows.inc()
        self.events.mark_event(2)
        self.sizes.update(value)
        self.total.add(value)
        self.group.counter("by group").inc(3)
        self.last = value
        return value


def test_a_harness_reads_them() -> None:
    with OperatorHarness(Measured()) as harness:
        harness.push(4).push(1)
        assert harness.metrics() == {
            "rows": 2,
            "shop.north.events": 4,
            "rows.seen.size": DistributionValue(2, 5, 1, 4),
            "by group": 6,
            "last": 1,
        }
        assert harness.metrics()["rows.seen.size"].mean == 2.5
        assert harness.accumulators() == {"total": 5}


def test_they_go_on_in_another_process_and_lose_what_failed() -> None:
    with OperatorHarness(Measured()) as harness:
        harness.push(4).end_epoch().forget_live_objects()
        harness.push(6)
        assert harness.function.last == 6
        assert harness.metrics()["last"] == 6
        harness.end_epoch().forget_live_objects()
        harness.push(100).fail()
        harness.push(5)
        assert harness.metrics() == {
            "rows": 3,
            "shop.north.events": 6,
            "rows.seen.size": DistributionValue(3, 15, 4, 6),
            "by group": 9,
            "last": 5,
        }
        assert harness.accumulators() == {"total": 15}
        function = harness.function
        assert function.rows is function.group.counter("rows")
        assert function.total.get_local_value() == 15


def test_a_restored_function_begins_at_zero() -> None:
    with OperatorHarness(Measured()) as harness:
        harness.push(4)
        with harness.restored() as another:
            another.push(1)
            assert another.metrics()["rows"] == 1
            assert another.accumulators() == {"total": 1}


def told(harness: Any) -> dict[str, Any]:
    """What the last epoch's acknowledgement brings."""
    reports = harness.acknowledgement.metrics
    return {str(v.metric_id): v.value for r in reports for v in r.metrics} | {
        v.name: v.state for r in reports for v in r.accumulators
    }


def test_an_acknowledgement_brings_what_has_changed() -> None:
    with OperatorHarness(Measured()) as harness:
        harness.push(4).end_epoch()
        assert told(harness).keys() == {"rows", "shop.north.events", "rows.seen.size", "by group", "last", "total"}
        harness.end_epoch()
        assert told(harness) == {}
        harness.forget_live_objects()
        # A gauge's last value does not travel.
        harness.end_epoch()
        assert told(harness) == {"last": 4}
        harness.push(4).end_epoch()
        assert told(harness).keys() == {"rows", "shop.north.events", "rows.seen.size", "by group", "total"}
        assert told(harness)["rows"] == 2


def test_a_job_without_metrics_pays_nothing() -> None:
    with OperatorHarness(lambda value: value, operation="map") as harness:
        harness.push(1).end_epoch()
        sent = msgspec.msgpack.decode(msgspec.msgpack.encode(harness.acknowledgement))
        assert "metrics" not in sent and "warnings" not in sent
        assert msgspec.convert(sent, Acknowledgement) == harness.acknowledgement


class Unpicklable(MapFunction):
    """``open()`` runs again in every process: it has a lock."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.lock = threading.Lock()
        group = runtime_context.get_metrics_group()
        self.opened = group.counter("opened")
        self.opened.inc()
        group.gauge("free", self.lock.locked)
        self.total = LongCounter()
        runtime_context.add_accumulator("total", self.total)

    def map(self, value: int) -> int:
        self.opened.inc(10)
        self.total.add(value)
        return value


def test_where_open_runs_again_nothing_is_lost_and_nothing_counted_twice() -> None:
    with OperatorHarness(Unpicklable()) as harness:
        harness.push(1).end_epoch()
        (lock, gauge) = sorted(harness.acknowledgement.warnings, reverse=True)
        assert "the gauge 'free' cannot be pickled" in lock
        assert "the field 'lock' cannot be pickled" in gauge
        harness.forget_live_objects().push(2)
        assert harness.metrics() == {"opened": 21, "free": False}
        assert harness.accumulators() == {"total": 3}
        assert harness.function.opened.get_count() == 21


class Closing(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.rows = IntCounter()
        runtime_context.add_accumulator("rows", self.rows)

    def map(self, value: int) -> int:
        return value

    def close(self) -> None:
        self.rows.add(7)


def test_what_close_adds_counts() -> None:
    harness = OperatorHarness(Closing())
    harness.push(1)
    harness.close()
    assert told(harness) == {"rows": 7}


# -- names and limits


def registry(limit: int = 200) -> MetricRegistry:
    return MetricRegistry("operator 'map'", {}, limit)


def test_the_same_name_is_the_same_metric() -> None:
    group = registry().group()
    assert group.counter("a") is group.counter("a")
    assert group.add_group("g").counter("a") is group.add_group("g").counter("a")
    assert group.add_group("g").counter("a") is not group.counter("a")
    assert group.add_group("g", "x").counter("a") is not group.add_group("g").add_group("x").counter("a")


def test_another_kind_under_a_name_is_not_reported() -> None:
    known = registry()
    counter, meter = known.group().counter("a"), known.group().meter("a")
    counter.inc()
    meter.mark_event(5)
    known.group().gauge("a", lambda: 1)
    known.sample_gauges()
    assert [value.kind for value in known.values().values()] == ["counter"]
    assert meter.get_count() == 5
    (warning,) = known.take_warnings()
    assert warning == "operator 'map': the meter 'a' is not reported, since there is a counter of that name."


def test_too_many_are_not_reported() -> None:
    known = registry(limit=2)
    group = known.group()
    counters = [group.counter(f"of user {n}") for n in range(5)]
    group.gauge("g", lambda: 1)
    for counter in counters:
        counter.inc()
    assert [counter.get_count() for counter in counters] == [1] * 5
    assert [str(metric_id) for metric_id in known.values()] == ["of user 0", "of user 1"]
    (warning,) = known.take_warnings()
    assert "the counter 'of user 2' and all that come behind it are not reported" in warning
    assert "holdfast.metrics.max-per-subtask" in warning
    assert known.take_warnings() == []


class PerRow(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.group = runtime_context.get_metrics_group()
        self.counters = {}

    def map(self, value: int) -> int:
        self.counters.setdefault(value, self.group.counter(str(value))).inc()
        return value


def test_what_is_not_reported_is_still_the_function_s() -> None:
    with OperatorHarness(PerRow()) as harness:
        harness.push_all(range(205)).end_epoch()
        assert len(told(harness)) == 200
        assert len(harness.acknowledgement.warnings) == 1
        harness.forget_live_objects().push(204)
        assert harness.function.counters[204].get_count() == 2
        assert len(harness.metrics()) == 200


@pytest.mark.parametrize("name", ["", None, 3])
def test_names_are_texts(name: Any) -> None:
    group = registry().group()
    for register in (group.counter, group.meter, group.distribution, group.add_group, lambda n: group.gauge(n, int)):
        with pytest.raises(ProgramError, match="expected a text"):
            register(name)


def test_a_gauge_is_a_function() -> None:
    with pytest.raises(ProgramError, match="expected a function"):
        registry().group().gauge("a", 3)


def test_a_gauge_that_raises_stops_nothing() -> None:
    values = iter([1, ValueError("no"), ValueError("no"), 4])

    def gauge() -> int:
        value = next(values)
        if isinstance(value, Exception):
            raise value
        return value

    known = registry()
    known.group().gauge("g", gauge)
    seen = []
    for _ in range(4):
        known.sample_gauges()
        seen.append(known.values()[MetricId((), "g")].value)
    assert seen == [1, 1, 1, 4]
    (warning,) = known.take_warnings()
    assert "the gauge 'g' raised ValueError" in warning


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (True, True), (3, 3), (2.5, 2.5), (np.int64(3), 3), (np.float32(0.5), 0.5), (1 << 70, float(1 << 70)),
        (Decimal("1.5"), "1.5"), (None, "None"), ("x" * 2_000, "x" * 1_000), (-(1 << 63), -(1 << 63)),
    ],
)  # fmt: skip
def test_values_that_can_be_shown(value: Any, shown: Any) -> None:
    found = plain(value)
    assert found == shown and type(found) is type(shown)


def test_a_distribution_of_other_numbers() -> None:
    distribution = registry().group().distribution("d")
    for value in (np.int32(-3), 2.5, 1):
        distribution.update(value)
    assert distribution.reported() == DistributionValue(3, 0.5, -3, 2.5)
    with pytest.raises(TypeError):
        distribution.update("4")
    assert distribution.reported().count == 3


# -- accumulators


def test_accumulators_merge() -> None:
    one, other = AverageAccumulator(), AverageAccumulator()
    one.add(1)
    other.add(2)
    other.add(6)
    one.merge(other)
    assert (one.get_local_value(), AverageAccumulator().get_local_value()) == (3.0, 0.0)
    left, right = Histogram(), Histogram()
    for value in (3, 1, 3):
        left.add(value)
    right.add(1)
    copy = left.clone()
    left.merge(right)
    assert left.get_local_value() == {1: 2, 3: 2} and copy.get_local_value() == {1: 1, 3: 2}
    assert list(left.get_local_value()) == [1, 3]
    summed = DoubleCounter(1)
    summed.add(0.5)
    assert summed.get_local_value() == 1.5
    summed.reset_local()
    assert repr(summed) == "DoubleCounter 0.0"


def test_accumulators_that_cannot_be_added() -> None:
    known = registry(limit=1)
    with pytest.raises(ProgramError, match=r"'a' is 3; expected one of IntCounter.*holdfast\.common\.accumulators"):
        known.add_accumulator("a", 3)
    known.add_accumulator("a", IntCounter())
    with pytest.raises(ProgramError, match="already exists"):
        known.add_accumulator("a", IntCounter())
    with pytest.raises(ProgramError, match="has 1 accumulators"):
        known.add_accumulator("b", IntCounter())


class Twice(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        for _ in range(2):
            runtime_context.add_accumulator("a", IntCounter())

    def map(self, value: int) -> int:
        return value


def test_an_error_says_where() -> None:
    said = r"operator 'Map'.*: The accumulator 'a' already exists"
    with pytest.raises(ProgramError, match=said), OperatorHarness(Twice()) as harness:
        harness.open()


# -- other functions


class Counting(CoProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        group = runtime_context.get_metrics_group()
        self.sides = [group.add_group("input", side).counter("rows") for side in ("left", "right")]

    def process_element1(self, value: Any, ctx: Any) -> Any:
        self.sides[0].inc()
        yield value

    def process_element2(self, value: Any, ctx: Any) -> Any:
        self.sides[1].inc()
        yield value


def test_functions_of_two_inputs() -> None:
    with ConnectedHarness(Counting()) as harness:
        harness.push1(1).push2(2).push2(3).end_epoch().forget_live_objects()
        harness.push1(4)
        assert harness.metrics() == {"input.left.rows": 2, "input.right.rows": 2}


class Fired(ProcessWindowFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.windows = runtime_context.get_metrics_group().counter("windows")

    def process(self, key: Any, context: Any, elements: Any) -> Any:
        self.windows.inc()
        yield key, len(list(elements))


class Seen(Trigger):
    """Counts its rows, and fires at every second."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        rows = ctx.get_metric_group().add_group("trigger").counter("rows")
        rows.inc()
        return TriggerResult.FIRE_AND_PURGE if rows.get_count() % 2 == 0 else TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_merge(self, window: Any, ctx: Any) -> None: ...

    def clear(self, window: Any, ctx: Any) -> None: ...


def test_window_functions_and_triggers() -> None:
    with WindowHarness(Fired(), GlobalWindows.create(), lambda row: row, trigger=Seen()) as harness:
        harness.push_all([1, 1, 2]).end_epoch().forget_live_objects()
        harness.push_all([2])
        assert harness.metrics() == {"windows": 2, "trigger.rows": 4}
