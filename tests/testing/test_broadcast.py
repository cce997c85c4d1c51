"""Functions on streams that are connected to a broadcast stream, in the harness."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.common import Types
from holdfast.datastream import BroadcastProcessFunction, KeyedBroadcastProcessFunction, RuntimeContext, TimeDomain
from holdfast.datastream.state import (
    BroadcastState,
    MapStateDescriptor,
    ReadOnlyBroadcastState,
    ValueStateDescriptor,
)
from holdfast.errors import FunctionError, ProgramError, StateAccessError, StateDescriptorError
from holdfast.testing import KeyedOperatorHarness, OperatorHarness, Subtasks
from tests.testing.broadcast_functions import FACTORS, TOTAL, AllStates, Model, Tagged

RULES = MapStateDescriptor("rules", Types.STRING(), Types.LIST(Types.LONG()))


@pytest.fixture(params=["heap", "lmdb", "rocksdb"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def first(row: Any) -> Any:
    return row[0]


def plain(function: Any, **options: Any) -> OperatorHarness:
    return OperatorHarness(function, broadcast_states=[FACTORS], **options)


def keyed(function: Any, **options: Any) -> KeyedOperatorHarness:
    return KeyedOperatorHarness(function, first, broadcast_states=[FACTORS], **options)


# -- without keys ------------------------------------------------------------------------------------------------------


def test_rows_see_what_broadcast_elements_put() -> None:
    with plain(Tagged()) as harness:
        harness.push("before").push_all_broadcast([("b", 1), ("a", 2), ("b", 3)]).push("between")
        harness.push_broadcast(("b", None)).push("after")
        assert harness.output() == [("before", []), ("between", [("b", 3), ("a", 2)]), ("after", [("a", 2)])]
        assert harness.broadcast_state(FACTORS) == {"a": 2}


def test_the_order_of_entries_is_the_same_in_another_process_and_after_a_restore() -> None:
    with plain(Tagged()) as harness:
        harness.push_all_broadcast([("z", 1), ("a", 2), ("m", 3), ("z", 4)])
        harness.end_epoch().forget_live_objects().push(1)
        snapshot = harness.snapshot()
    with OperatorHarness.restore(snapshot, Tagged(), broadcast_states=[FACTORS]) as again:
        assert again.push(1).output() == harness.output() == [(1, [("z", 4), ("a", 2), ("m", 3)])]


def test_a_failed_epoch_takes_broadcast_state_back() -> None:
    with plain(Tagged()) as harness:
        harness.push_broadcast(("a", 1)).end_epoch().push_broadcast(("a", 2))
        with pytest.raises(FunctionError, match=r"Broadcast Process.*the row was \('b',\)"):
            harness.push_broadcast(("b",))
        assert harness.broadcast_state(FACTORS) == {"a": 1}


def test_every_new_subtask_has_the_whole_map() -> None:
    harnesses = OperatorHarness.parallel(2, Tagged(), broadcast_states=[FACTORS])
    snapshot = harnesses.push_all_broadcast([("a", 1), ("b", 2)]).snapshot()
    for parallelism in (1, 3):
        with harnesses.rescaled(parallelism, snapshot) as rescaled:
            for harness in rescaled:
                harness.assert_broadcast_state(FACTORS, {"a": 1, "b": 2})
                assert harness.push(7).output() == [(7, [("a", 1), ("b", 2)])]


class Times(BroadcastProcessFunction):
    def process_element(self, value: Any, ctx: BroadcastProcessFunction.ReadOnlyContext) -> list[Any]:
        return [("row", value, ctx.timestamp(), ctx.current_watermark(), ctx.current_processing_time())]

    def process_broadcast_element(self, value: Any, ctx: BroadcastProcessFunction.Context) -> list[Any]:
        return [("broadcast", value, ctx.timestamp(), ctx.current_watermark(), ctx.current_processing_time())]


def test_contexts_tell_times_and_the_lower_watermark_of_both_inputs() -> None:
    with plain(Times()) as harness:
        harness.advance_watermark(100).advance_broadcast_watermark(40).advance_processing_time(5)
        harness.push("a", 120).push_broadcast("b", 50)
        assert harness.output() == [("row", "a", 120, 40, 5), ("broadcast", "b", 50, 40, 5)]
        assert harness.timestamped_output()[1][1] == 50
        assert harness.advance_broadcast_watermark(200).watermark == 100
        assert harness.end_broadcast_input().advance_watermark(300).watermark == 300


# -- refusals ----------------------------------------------------------------------------------------------------------


class Asks(KeyedBroadcastProcessFunction):
    """Does on each side what it is told."""

    def __init__(self, on_rows: Any = None, on_elements: Any = None) -> None:
        self.on_rows, self.on_elements = on_rows, on_elements

    def process_element(self, value: Any, ctx: Any) -> list[Any]:
        return [self.on_rows(ctx)] if self.on_rows else []

    def process_broadcast_element(self, value: Any, ctx: Any) -> list[Any]:
        return [self.on_elements(ctx)] if self.on_elements else []


@pytest.mark.parametrize("side", ["on_rows", "on_elements"])
def test_a_descriptor_that_was_not_given_to_broadcast(side: str) -> None:
    other = MapStateDescriptor("other", Types.STRING(), Types.LONG())
    refusal = pytest.raises(StateAccessError, match=r"map state 'other'.*was not given to broadcast\(\).*'factors'")
    with keyed(Asks(**{side: lambda ctx: ctx.get_broadcast_state(other)})) as harness, refusal:
        harness.push(("a",)).push_broadcast("x")


@pytest.mark.parametrize(
    ("descriptor", "message"),
    [
        (MapStateDescriptor("factors", Types.STRING(), Types.STRING()), "Use one descriptor, or two names"),
        (ValueStateDescriptor("factors", Types.LONG()), "takes a MapStateDescriptor"),
        (None, "takes a MapStateDescriptor"),
    ],
)
def test_another_descriptor_of_the_name(descriptor: Any, message: str) -> None:
    refusal = pytest.raises(StateDescriptorError, match=message)
    with keyed(Asks(lambda ctx: ctx.get_broadcast_state(descriptor))) as harness, refusal:
        harness.push(("a",))


def test_an_equal_descriptor_is_as_good() -> None:
    equal = MapStateDescriptor("factors", Types.STRING(), Types.LONG())
    with keyed(Asks(lambda ctx: ctx.get_broadcast_state(equal).is_empty())) as harness:
        assert harness.push(("a",)).push(("a",)).output() == [True, True]


WRITES = {
    "put": lambda state: state.put("a", 1),
    "put_all": lambda state: state.put_all({"a": 1}),
    "remove": lambda state: state.remove("a"),
    "clear": lambda state: state.clear(),
    "setitem": lambda state: state.__setitem__("a", 1),
    "delitem": lambda state: state.__delitem__("a"),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_rows_cannot_write(write: Any) -> None:
    with keyed(Asks(lambda ctx: write(ctx.get_broadcast_state(FACTORS)))) as harness:
        with pytest.raises(StateAccessError, match="'factors' can only be read in process_element") as failure:
            harness.push(("a",))
        assert str(failure.value).startswith("operator 'Keyed Broadcast Process'")


class Alarm(KeyedBroadcastProcessFunction):
    """Gives on a timer who it is for, when and in which domain, with the entries of the broadcast state."""

    def __init__(self, write: bool = False) -> None:
        self.write = write

    def process_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> None:
        timers = ctx.timer_service()
        timers.register_event_time_timer(value[1])
        timers.register_processing_time_timer(value[1])

    def process_broadcast_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.Context) -> None:
        ctx.get_broadcast_state(FACTORS).put(*value)

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext) -> Iterator[Any]:
        state: Any = ctx.get_broadcast_state(FACTORS)
        if self.write:
            state.put("a", 1)
        yield ctx.get_current_key(), timestamp, ctx.time_domain(), dict(state.items())


def test_timers_read_and_do_not_write() -> None:
    with keyed(Alarm(write=True)) as harness, pytest.raises(StateAccessError, match="'factors' can only be read"):
        harness.push(("k", 10)).advance_processing_time(10)


def test_timers_fire_when_both_inputs_have_come_so_far(backend: str) -> None:
    with keyed(Alarm(), backend=backend) as harness:
        harness.push_all([("k", 20), ("j", 10)]).push_broadcast(("a", 1)).advance_watermark(100)
        assert harness.output() == [] and harness.num_event_time_timers() == 2
        harness.advance_broadcast_watermark(15)
        assert harness.take_output() == [("j", 10, TimeDomain.EVENT_TIME, {"a": 1})]
        with harness.push_broadcast(("b", 2)).rescaled(3) as again:
            for subtask in again.advance_watermark(100):
                # The broadcast input ends: only the other one holds event time back.
                subtask.end_broadcast_input()
            assert again.take_output() == [("k", 20, TimeDomain.EVENT_TIME, {"a": 1, "b": 2})]


def test_processing_time_timers() -> None:
    with keyed(Alarm()) as harness:
        harness.push_broadcast(("a", 1)).push(("k", 10)).advance_processing_time(10)
        assert harness.output() == [("k", 10, TimeDomain.PROCESSING_TIME, {"a": 1})]


def test_a_watermark_that_comes_with_a_broadcast_element_fires_timers_before_it() -> None:
    with keyed(Alarm()) as harness:
        harness.push(("k", 10)).advance_watermark(50)
        # The next element of the broadcast stream carries the watermark that the stream has come to.
        harness._epochs.inputs[1].watermark = 30
        harness.push_broadcast(("a", 1))
        assert harness.output() == [("k", 10, TimeDomain.EVENT_TIME, {})]


# -- values ------------------------------------------------------------------------------------------------------------


class ChangesInPlace(KeyedBroadcastProcessFunction):
    def process_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Iterator[Any]:
        state = ctx.get_broadcast_state(RULES)
        state.get("a").append(9)
        for numbers in state.values():
            numbers.append(9)
        yield state.get("a")

    def process_broadcast_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.Context) -> None:
        ctx.get_broadcast_state(RULES).put("a", value)
        value.append(9)
        ctx.get_broadcast_state(RULES).get("a").append(9)


def test_a_value_changed_in_place_changes_nothing() -> None:
    with KeyedOperatorHarness(ChangesInPlace(), first, broadcast_states=[RULES]) as harness:
        harness.push_broadcast([1]).push(("k",)).end_epoch().forget_live_objects().push(("k",))
        assert harness.output() == [[1], [1]]


class Holds(KeyedBroadcastProcessFunction):
    """Keeps states in its fields."""

    def __init__(self) -> None:
        self.view: ReadOnlyBroadcastState | None = None
        self.state: BroadcastState | None = None

    def process_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> list[Any]:
        self.view = self.view or ctx.get_broadcast_state(FACTORS)
        return [dict(self.view.items())]

    def process_broadcast_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.Context) -> None:
        self.state = self.state or ctx.get_broadcast_state(FACTORS)
        self.state.put(*value)


def test_states_in_fields_are_bound_again_in_another_process() -> None:
    with keyed(Holds()) as harness:
        harness.push(("k",)).push_broadcast(("a", 1)).end_epoch().forget_live_objects()
        assert harness.acknowledgement.warnings == (), "no field stays behind"
        harness.push_broadcast(("b", 2)).push(("k",))
        assert harness.output() == [{}, {"a": 1, "b": 2}]
        assert harness.broadcast_state(FACTORS) == {"a": 1, "b": 2}
        with pytest.raises(StateAccessError, match="can only be read"):
            harness.function.view.put("c", 3)


# -- keyed state from the broadcast side -------------------------------------------------------------------------------


def test_apply_to_keyed_state(backend: str) -> None:
    with keyed(AllStates(), backend=backend) as harness:
        harness.push_broadcast(("factor", "a", 2)).push_all([(1, 10), (2, 5)]).end_epoch()
        # One key that is stored, one that is stored and changed, one that is only in the cache.
        harness.push_all([(2, 5), (3, 1)]).push_broadcast(("scale", 10))
        assert [harness.state(TOTAL, key) for key in (1, 2, 3, 4)] == [200, 200, 20, None]
        with harness.rescaled(3) as again:
            for subtask in again.push_broadcast(("scale", 2)).end_epoch():
                subtask.forget_live_objects()
            again.push_broadcast(("scale", 2)).assert_state(TOTAL, {1: 800, 2: 800, 3: 80})


def fail(key: Any, state: Any) -> None:
    raise ValueError("no")


def test_a_failure_inside_names_the_key() -> None:
    with keyed(AllStates()) as harness:
        snapshot = harness.push((5, 1)).snapshot()
    function = Asks(on_elements=lambda ctx: ctx.apply_to_keyed_state(TOTAL, fail))
    failure = pytest.raises(FunctionError, match="key 5: ValueError: no; the row was \"apply_to_keyed_state of 'total'")
    harness = KeyedOperatorHarness.restore(snapshot, function, first, broadcast_states=[FACTORS])
    with harness, failure:
        harness.push_broadcast("x")


class ReadsKeyedState(Asks):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.total = runtime_context.get_state(TOTAL)

    def process_broadcast_element(self, value: Any, ctx: Any) -> list[Any]:
        return [self.total.value()]


def test_broadcast_elements_have_no_key() -> None:
    with keyed(ReadsKeyedState()) as harness:
        harness.push(("a",))
        with pytest.raises(StateAccessError, match=r"Broadcast elements have no key.*ctx.apply_to_keyed_state\(\)"):
            harness.push_broadcast("x")


class KeepsTimers(Asks):
    def process_element(self, value: Any, ctx: Any) -> None:
        self.timers = ctx.timer_service()

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        self.timers.register_event_time_timer(1)


def test_broadcast_elements_set_no_timers() -> None:
    with keyed(KeepsTimers()) as harness, pytest.raises(StateAccessError, match="broadcast elements have no key"):
        harness.push(("a",)).push_broadcast("x")


# -- rescaling ---------------------------------------------------------------------------------------------------------


def run_epoch(
    harnesses: Subtasks[KeyedOperatorHarness], elements: list[Any], rows: list[tuple[int, int]]
) -> list[Any]:
    """All subtasks through one epoch, as a job does it: elements to everybody, rows to their owners; what came out."""
    return harnesses.push_all_broadcast(elements).push_all(rows).take_output()


@pytest.mark.parametrize("parallelism", [1, 3, 5, 7, 16])
def test_all_kinds_of_state_survive_rescaling(parallelism: int, backend: str) -> None:
    chance = random.Random(parallelism)
    model = Model()
    old = KeyedOperatorHarness.parallel(
        2, AllStates(), first, Types.LONG(), broadcast_states=[FACTORS], backend=backend
    )
    for _ in range(3):
        elements = [("factor", f"f{old[0].epoch}", old[0].epoch + 1), ("scale", 2)]
        rows = [(chance.randrange(200), chance.randrange(100)) for _ in range(120)]
        assert sorted(run_epoch(old, elements, rows)) == sorted(model.epoch(elements, rows))
        snapshot = old.snapshot()
    with old.rescaled(parallelism, snapshot) as new:
        model.audit(run_epoch(new, [("report",)], []), parallelism, union=["0/2", "1/2"])
        # And it goes on as if nothing had happened.
        rows = [(chance.randrange(300), chance.randrange(100)) for _ in range(120)]
        elements = [("scale", 3), ("factor", "f1", 7)]
        assert sorted(run_epoch(new, elements, rows)) == sorted(model.epoch(elements, rows))
        model.audit(run_epoch(new, [("report",)], []), parallelism, union=["0/2", "1/2"])


# -- the harness itself ------------------------------------------------------------------------------------------------


def test_without_broadcast_states_there_is_no_broadcast_input() -> None:
    with OperatorHarness(lambda row: row, operation="map") as harness:
        for call in (lambda: harness.push_broadcast(1), lambda: harness.end_broadcast_input()):
            with pytest.raises(ProgramError, match="broadcast_states="):
                call()


def test_the_input_goes_on_when_the_broadcast_stream_has_ended() -> None:
    with plain(Tagged()) as harness:
        harness.push_broadcast(("a", 1)).end_broadcast_input().end_epoch().push(1).end_epoch()
        assert not harness.acknowledgement.ended
        harness.push(2).end_input()
        assert harness.acknowledgement.ended
        assert harness.output() == [(1, [("a", 1)]), (2, [("a", 1)])]
