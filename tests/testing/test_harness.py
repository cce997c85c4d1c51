"""The harness itself: what users do with it, on both backends."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Row, Types
from holdfast.datastream import FilterFunction, KeyedProcessFunction, ProcessFunction, ReduceFunction
from holdfast.errors import (
    FunctionError,
    NullKeyError,
    ProgramError,
    RestoreError,
    RowTypeError,
    StateAccessError,
    StateTypeError,
)
from holdfast.runtime import live_task
from holdfast.testing import HarnessSnapshot, KeyedOperatorHarness, ManualClock, OperatorHarness
from tests.testing.functions import SUM, Buffering, Counter, CountWithKeyedState, Everything


@pytest.fixture(params=["heap", "lmdb", "rocksdb"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def first(row: Any) -> Any:
    return row[0]


def averages(backend: str = "heap", **options: Any) -> KeyedOperatorHarness:
    return KeyedOperatorHarness(CountWithKeyedState(), first, Types.STRING(), backend=backend, **options)


def everything(backend: str = "heap", **options: Any) -> KeyedOperatorHarness:
    return KeyedOperatorHarness(Everything(), first, Types.STRING(), backend=backend, **options)


# -- functions ---------------------------------------------------------------------------------------------------------


def test_count_with_keyed_state(backend: str) -> None:
    with averages(backend) as harness:
        assert harness.state(SUM, "a") is None
        harness.push_all([("a", 3), ("b", 1), ("a", 5)])
        assert harness.output() == []
        assert harness.state(SUM, "a") == (2, 8)
        harness.push(("a", 8))
        assert harness.take_output() == [("a", 5)]
        assert harness.state(SUM, "a") is None
        assert harness.state(SUM, "b") == (1, 1)
        harness.end_epoch().push_all([("b", 1), ("b", 2)])
        assert harness.take_output() == [("b", 1)]


def test_timers_of_both_kinds_in_time_order(backend: str) -> None:
    clock = ManualClock(1000)
    with everything(backend, clock=clock) as harness:
        for key, time in (("b", 30), ("a", 20), ("a", 40), ("a", 20)):
            harness.push((key, "event", time), timestamp=time)
        harness.push(("c", "processing", 1500))
        assert (harness.num_event_time_timers(), harness.num_processing_time_timers()) == (3, 1)
        harness.take_output()
        harness.advance_watermark(35)
        assert harness.take_output() == [("event", 20, "a"), ("event", 30, "b")]
        assert harness.watermark == 35
        harness.end_epoch()
        assert (harness.num_event_time_timers(), harness.num_processing_time_timers()) == (1, 1)
        harness.advance_processing_time(499)
        assert harness.output() == []
        harness.advance_processing_time(1)
        assert harness.take_output() == [("processing", 1500, "c")]
        harness.push(("a", "cancel", 40)).take_output()
        assert harness.num_event_time_timers() == 0
        assert harness.advance_watermark(100).output() == []


def test_an_overdue_timer_fires_when_the_next_epoch_begins(backend: str) -> None:
    clock = ManualClock()
    with everything(backend, clock=clock) as harness:
        harness.push(("a", "processing", 50)).end_epoch().take_output()
        assert harness.acknowledgement is not None and harness.acknowledgement.next_timer == 50
        clock.advance(60)
        assert harness.forget_live_objects().open().take_output() == [("processing", 50, "a")]


def test_rows_come_out_with_the_time_of_their_row_or_timer(backend: str) -> None:
    with everything(backend) as harness:
        harness.push(("a", "event", 70), timestamp=5).push(("a", "set", 1)).advance_watermark(100)
        assert [time for _, time in harness.timestamped_output()] == [5, None, 70]


class Times(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
        yield (
            value,
            ctx.timestamp(),
            ctx.timer_service().current_watermark(),
            ctx.timer_service().current_processing_time(),
        )


class Odd(FilterFunction):
    def filter(self, value: Any) -> bool:
        return bool(value % 2)


class Add(ReduceFunction):
    def reduce(self, value1: tuple[str, int], value2: tuple[str, int]) -> tuple[str, int]:
        return value1[0], value1[1] + value2[1]


def test_functions_without_keys() -> None:
    with OperatorHarness(Times(), clock=ManualClock(9)) as harness:
        harness.advance_watermark(4).push("x", 7)
        assert harness.output() == [("x", 7, 4, 9)]
    with OperatorHarness(Odd()) as harness:
        assert harness.push_all(range(6)).output() == [1, 3, 5]
    with OperatorHarness(lambda value: [value] * value, operation="flat_map") as harness:
        assert harness.push_all([2, 0, 1]).output() == [2, 2, 1]


def test_keyed_functions_without_timers(backend: str) -> None:
    with KeyedOperatorHarness(Add(), first, backend=backend) as harness:
        assert harness.push_all([("a", 1), ("b", 5), ("a", 2)]).end_epoch().push(("a", 4)).output() == [
            ("a", 1),
            ("b", 5),
            ("a", 3),
            ("a", 7),
        ]
    for function, operation, expected in (
        (lambda row: row[1] * 2, "map", [2, 4]),
        (lambda row: row[1] > 1, "filter", [("a", 2)]),
    ):
        with KeyedOperatorHarness(function, first, operation=operation, backend=backend) as harness:
            assert harness.push_all([("a", 1), ("a", 2)]).output() == expected


def test_a_stream_without_event_time() -> None:
    with everything(event_time=False) as harness:
        harness.push(("a", "event", 10)).advance_watermark(20)
        assert harness.output() == [("a", "event", "a", None), ("event", 10, "a")]
        with pytest.raises(ProgramError, match="event_time=False"):
            harness.push(("a", "set", 1), timestamp=1)


def test_declared_types_and_column_keys_are_those_of_the_program(backend: str) -> None:
    row = Types.ROW_NAMED(["n", "name"], [Types.LONG(), Types.STRING()])
    with KeyedOperatorHarness(
        lambda value: (value.name, value.n),
        "name",
        operation="map",
        input_type=row,
        output_type="a string, b bigint",
        backend=backend,
    ) as harness:
        harness.push(Row(n=1, name="x"))
        assert harness.output() == [Row(a="x", b=1)]
        with pytest.raises(RowTypeError, match="'one'"):
            harness.push(Row(n="one", name="x"))
    with (
        OperatorHarness(lambda value: "text", operation="map", output_type=Types.LONG()) as harness,
        pytest.raises(RowTypeError),
    ):
        harness.push(1)


def test_the_end_of_input_fires_what_is_left(backend: str) -> None:
    with everything(backend) as harness:
        harness.push(("a", "event", 1 << 40)).push(("a", "processing", 1 << 40)).take_output()
        assert harness.end_input().output() == [("event", 1 << 40, "a")]
        assert harness.acknowledgement is not None and harness.acknowledgement.ended


# -- the life of a function --------------------------------------------------------------------------------------------


def test_a_counter_and_a_field_that_cannot_be_pickled_over_50_epochs(backend: str) -> None:
    chance = random.Random(5)
    warnings: list[str] = []
    with KeyedOperatorHarness(Counter(), lambda value: value % 7, operation="map", backend=backend) as harness:
        taken_up = 0
        for epoch in range(50):
            harness.push(epoch)
            assert harness.take_output() == [(epoch, epoch + 1)]
            assert harness.function.connection.made_by_open
            harness.end_epoch()
            assert harness.acknowledgement is not None
            warnings += harness.acknowledgement.warnings
            if chance.random() < 0.5:
                taken_up += 1
                harness.forget_live_objects()
        assert 10 < taken_up < 40
        # open() ran again wherever the connection was missing; the fields that travelled were laid over its result.
        assert harness.function.opened == 1
    (warning,) = set(warnings)
    assert "the field 'connection' cannot be pickled" in warning


def test_functions_are_told_of_checkpoints(backend: str) -> None:
    with OperatorHarness(Buffering(), backend=backend) as harness:
        harness.snapshot()
        harness.notify_checkpoint_aborted(2)
        harness.forget_live_objects()
        assert harness.function.told == [False, ("complete", 1), ("aborted", 2)]


def test_an_error_names_everything_and_rolls_the_epoch_back(backend: str) -> None:
    with everything(backend) as harness:
        harness.push(("a", "set", 1)).advance_watermark(5).end_epoch()
        harness.push(("a", "set", 2)).advance_watermark(50)
        with pytest.raises(
            FunctionError, match=r"subtask 1/1, key 'b': ValueError: asked to; the row was \('b', 'fail', 0\)"
        ):
            harness.push(("b", "fail", 0))
        assert harness.watermark == 5
        harness.take_output()
        assert harness.push(("a", "get", 0)).output() == [("a", "get", "a", 1)]


class WrongType(Everything):
    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        self.list.add("no number")  # type: ignore[arg-type]  # what is refused


def test_an_error_of_ours_stays_what_it_is_and_says_where(backend: str) -> None:
    with KeyedOperatorHarness(WrongType(), first, backend=backend) as harness:
        harness.push(("a", "event", 5))
        with pytest.raises(StateTypeError) as found:
            harness.advance_watermark(10)
    assert found.value.__cause__ is not found.value
    assert str(found.value).count("subtask 1/1") == 1


def test_an_error_in_the_first_epoch_leaves_an_empty_operator(backend: str) -> None:
    with everything(backend) as harness:
        harness.push(("a", "set", 1))
        with pytest.raises(FunctionError):
            harness.push(("b", "fail", 0))
        harness.take_output()
        assert harness.push(("a", "get", 0)).output() == [("a", "get", "a", None)]


# -- operator state ----------------------------------------------------------------------------------------------------


def test_operator_state_is_split_when_the_parallelism_changes() -> None:
    with OperatorHarness(Buffering()) as harness:
        harness.push_all([1, 2])
        snapshot = harness.snapshot()
        harness.push(3)
        assert harness.output() == [1, 2, 3]
    two = OperatorHarness.rescale(snapshot, 2, Buffering())
    assert [h.function.waiting for h in two] == [[1], [2]]
    assert [h.function.told for h in two] == [[True], [True]]
    again = OperatorHarness.restore([h.push(9).snapshot() for h in two], Buffering(), parallelism=1)
    assert again.function.waiting == [1, 9, 2, 9]
    for h in (*two, again):
        h.close()


# -- refusals ----------------------------------------------------------------------------------------------------------


def test_a_row_of_another_subtask_is_refused_with_its_owner() -> None:
    harnesses = [averages(parallelism=3, subtask=subtask) for subtask in range(3)]
    owners = [h for h in harnesses if h.owns(("a", 1))]
    assert len(owners) == 1
    stranger = next(h for h in harnesses if h is not owners[0])
    with pytest.raises(ProgramError, match=rf"The key 'a' belongs to subtask {harnesses.index(owners[0])} of 3"):
        stranger.push(("a", 1))
    owners[0].push(("a", 1))
    for harness in harnesses:
        harness.close()


def test_a_null_key_is_refused() -> None:
    with (
        averages() as harness,
        pytest.raises(NullKeyError, match=r"the input of operator .* the key of row \(None, 1\) is None"),
    ):
        harness.push((None, 1))


def test_a_plain_function_needs_to_say_what_it_is_for() -> None:
    with pytest.raises(ProgramError, match="operation="):
        OperatorHarness(lambda value: value)


def test_options_are_checked() -> None:
    with pytest.raises(ProgramError, match="no option 'paralelism'"):
        OperatorHarness(Odd(), paralelism=2)  # type: ignore[call-arg]  # what is refused
    with pytest.raises(ProgramError, match="Subtask 2 does not exist"):
        OperatorHarness(Odd(), parallelism=2, subtask=2)
    with pytest.raises(TypeError, match="KeyedProcessFunction"):
        KeyedOperatorHarness(Times(), first)
    with pytest.raises(TypeError, match="KeyedProcessFunction"):
        OperatorHarness(Everything())


def test_what_needs_keys_is_refused_without_them() -> None:
    with averages() as harness, pytest.raises(ProgramError, match="has no timers"):
        harness.num_event_time_timers()

    class WithoutKey(ProcessFunction):
        def process_element(self, value: Any, ctx: ProcessFunction.Context) -> None:
            ctx.timer_service().register_event_time_timer(1)

    with OperatorHarness(WithoutKey()) as harness, pytest.raises(StateAccessError, match="keyed streams only"):
        harness.push(1)


def test_snapshots_of_too_few_or_different_subtasks_are_refused() -> None:
    harnesses = [averages(parallelism=2, subtask=subtask) for subtask in range(2)]
    snapshots = [harness.snapshot() for harness in harnesses]
    with pytest.raises(RestoreError, match=r"subtasks \[0\]"):
        KeyedOperatorHarness.restore(snapshots[0], CountWithKeyedState(), first)
    with pytest.raises(RestoreError, match="no snapshot"):
        HarnessSnapshot.merged([])
    for harness in harnesses:
        harness.close()


def test_a_closed_harness_is_closed_and_leaves_nothing_behind(backend: str) -> None:
    harness = averages(backend)
    directory = Path(harness._directory.name)
    harness.push(("a", 1)).end_epoch()
    assert any(directory.rglob("*"))
    harness.close()
    harness.close()
    assert not directory.exists()
    assert not [key for key in live_task._live if key[0] == harness.job_id]
    with pytest.raises(ProgramError, match="is closed"):
        harness.push(("a", 1))


def test_live_objects_cannot_be_forgotten_in_the_middle_of_an_epoch() -> None:
    with averages() as harness, pytest.raises(ProgramError, match="An epoch runs"):
        harness.forget_live_objects()


def test_a_clock_does_not_go_back() -> None:
    with pytest.raises(ProgramError, match="does not go back"):
        ManualClock(5).advance(-1)


def test_job_parameters_and_facts_of_the_subtask() -> None:
    class Facts(KeyedProcessFunction):
        def open(self, runtime_context: Any) -> None:
            self.facts = (
                runtime_context.get_job_parameter("greeting", "none"),
                runtime_context.get_index_of_this_subtask(),
                runtime_context.get_number_of_parallel_subtasks(),
                runtime_context.get_max_number_of_parallel_subtasks(),
                runtime_context.get_attempt_number(),
            )

        def process_element(self, value: Any, ctx: Any) -> None:
            return None

    options: Any = {"parameters": {"greeting": "hi"}, "parallelism": 4, "subtask": 1, "max_parallelism": 64}
    with KeyedOperatorHarness(Facts(), first, **options) as harness:
        assert harness.function.facts == ("hi", 1, 4, 64, 0)


class KeepsItsTimerService(KeyedProcessFunction):
    service: Any = None

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        self.service = self.service or ctx.timer_service()
        self.service.register_event_time_timer(value[1])

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> list[Any]:
        return [(ctx.get_current_key(), timestamp)]


def test_a_timer_service_in_a_field_is_that_of_the_running_task(backend: str) -> None:
    with KeyedOperatorHarness(KeepsItsTimerService(), first, Types.STRING(), backend=backend) as harness:
        harness.push(("a", 10), timestamp=1)
        harness.end_epoch()
        harness.forget_live_objects()
        harness.push(("b", 20), timestamp=2)
        harness.end_epoch()
        harness.advance_watermark(30)
        assert harness.output() == [("a", 10), ("b", 20)]
