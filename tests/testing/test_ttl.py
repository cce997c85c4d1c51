"""Functions whose state expires, in the harness: its clock is theirs."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.common import Time, Types
from holdfast.datastream import (
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    ReduceFunction,
    RuntimeContext,
)
from holdfast.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from holdfast.errors import FunctionError
from holdfast.testing import HarnessSnapshot, KeyedOperatorHarness, ManualClock

HOUR = 3_600_000


def first(row: Any) -> Any:
    return row[0]


def an_hour() -> StateTtlConfig:
    return StateTtlConfig.new_builder(Time.hours(1)).build()


class Add(ReduceFunction):
    def reduce(self, value1: int, value2: int) -> int:
        return value1 + value2


class Seen(MapFunction):
    """Gives for each row what is there before it: the sum, the list and the map of its key."""

    def __init__(self, ttl: StateTtlConfig | None, boom: Any = None) -> None:
        self.boom = boom
        self.sum = ReducingStateDescriptor("sum", Add(), Types.LONG())
        self.all = ListStateDescriptor("all", Types.LONG())
        self.last = MapStateDescriptor("last", Types.LONG(), Types.LONG())
        for descriptor in (self.sum, self.all, self.last):
            if ttl is not None:
                descriptor.enable_time_to_live(ttl)

    def open(self, runtime_context: RuntimeContext) -> None:
        self.sum_state = runtime_context.get_reducing_state(self.sum)
        self.all_state = runtime_context.get_list_state(self.all)
        self.last_state = runtime_context.get_map_state(self.last)

    def map(self, value: Any) -> Any:
        _, number = value
        found = self.sum_state.get(), list(self.all_state.get()), dict(self.last_state.items())
        self.sum_state.add(number)
        self.all_state.add(number)
        self.last_state.put(number, number)
        if number == self.boom:
            raise ValueError(number)
        return found


NOTHING = (None, [], {})


@pytest.fixture(params=["heap", "lmdb", "rocksdb"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def harness_of(function: Any, backend: str, **options: Any) -> KeyedOperatorHarness:
    return KeyedOperatorHarness(function, first, Types.STRING(), backend=backend, **options)


@pytest.mark.parametrize("forget", [False, True])
def test_state_expires_by_the_clock_of_the_harness(backend: str, forget: bool) -> None:
    with harness_of(Seen(an_hour()), backend) as harness:
        for millis, expected in [
            (0, NOTHING),
            (HOUR - 1, (1, [1], {1: 1})),
            # The first element has expired. What the second row wrote lives: the sum, an element, the entry anew.
            (1, (2, [1], {1: 1})),
            (HOUR, NOTHING),
        ]:
            harness.advance_processing_time(millis)
            assert harness.push(("a", 1)).take_output() == [expected]
            harness.end_epoch()
            if forget:
                harness.forget_live_objects()


def test_elements_and_entries_expire_one_by_one(backend: str) -> None:
    with harness_of(Seen(an_hour()), backend) as harness:
        for number in (1, 2, 3):
            harness.push(("a", number)).end_epoch()
            harness.advance_processing_time(HOUR // 2)
        assert harness.push(("a", 4)).output()[-1] == (6, [3], {3: 3})
        assert harness.state(harness.function.all, "a") == [3, 4]
        assert harness.state(harness.function.last, "a") == {3: 3, 4: 4}


def test_the_clock_may_be_moved_between_rows(backend: str) -> None:
    clock = ManualClock()
    with harness_of(Seen(an_hour()), backend, clock=clock) as harness:
        harness.push(("a", 1))
        clock.advance(HOUR)
        assert harness.state(harness.function.sum, "a") is None
        assert harness.push(("a", 1)).output()[-1] == NOTHING


def test_a_failed_epoch_takes_renewals_back(backend: str) -> None:
    with harness_of(Seen(an_hour(), boom=13), backend) as harness:
        harness.push(("a", 1)).end_epoch()
        harness.advance_processing_time(HOUR - 1)
        with pytest.raises(FunctionError):
            harness.push(("a", 13))
        harness.advance_processing_time(1)
        assert harness.push(("a", 1)).output()[-1] == NOTHING


def run_and_snapshot(function: Any, backend: str, clock: ManualClock, rows: list[Any]) -> HarnessSnapshot:
    with harness_of(function, backend, clock=clock) as harness:
        harness.push_all(rows[:1]).snapshot()
        return harness.push_all(rows[1:]).snapshot()


@pytest.mark.parametrize("new_backend", ["heap", "rocksdb"])
def test_restores_keep_the_times_of_access(backend: str, new_backend: str) -> None:
    clock = ManualClock()
    rows = [(f"key {number}", number) for number in range(10)]
    snapshot = run_and_snapshot(Seen(an_hour()), backend, clock, rows)
    clock.advance(HOUR - 1)
    for late in (0, 1):
        clock.advance(late)
        harnesses = KeyedOperatorHarness.rescale(
            snapshot, 3, Seen(an_hour()), first, Types.STRING(), backend=new_backend, clock=clock
        )
        for harness in harnesses:
            with harness:
                mine = [row for row in rows if harness.owns(row)]
                expected = [NOTHING if late else (n, [n], {n: n}) for _, n in mine]
                assert harness.push_all(mine).output() == expected


def test_switched_on_and_off_over_restores(backend: str) -> None:
    clock = ManualClock()
    kept = 1, [1], {1: 1}
    snapshot = run_and_snapshot(Seen(None), backend, clock, [("a", 1), ("b", 1)])
    clock.advance(5 * HOUR)
    with KeyedOperatorHarness.restore(snapshot, Seen(an_hour()), first, Types.STRING(), clock=clock) as on:
        on.advance_processing_time(HOUR - 1)
        assert on.push(("a", 2)).output() == [kept]
        both = on.snapshot()
    clock.advance(2 * HOUR)
    with KeyedOperatorHarness.restore(both, Seen(None), first, Types.STRING(), clock=clock) as off:
        # Expired since, but not removed: no epoch has ended, and nothing was read.
        assert off.push(("a", 3)).output() == [(3, [1, 2], {1: 1, 2: 2})]
        assert off.push(("b", 3)).output()[-1] == kept
    with KeyedOperatorHarness.restore(both, Seen(an_hour()), first, Types.STRING(), clock=clock) as expired:
        assert expired.push(("a", 3)).output() == [NOTHING]


class Deadline(KeyedProcessFunction):
    """A timer that looks at state after an hour, and one that looks a moment before."""

    def __init__(self) -> None:
        self.descriptor = ValueStateDescriptor("value", Types.LONG())
        self.descriptor.enable_time_to_live(an_hour())

    def open(self, runtime_context: RuntimeContext) -> None:
        self.state = runtime_context.get_state(self.descriptor)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        self.state.update(value[1])
        for millis in (HOUR - 1, HOUR):
            ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + millis)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield self.state.value()


def test_timers_see_the_time_at_which_they_fire(backend: str) -> None:
    with harness_of(Deadline(), backend) as harness:
        harness.push(("a", 7)).advance_processing_time(HOUR - 1)
        harness.advance_processing_time(1)
        assert harness.output() == [7, None]


RULES = MapStateDescriptor("rules", Types.STRING(), Types.STRING())
AMOUNT = ValueStateDescriptor("amount", Types.LONG())
AMOUNT.enable_time_to_live(an_hour())


class Amounts(KeyedBroadcastProcessFunction):
    def __init__(self) -> None:
        self.told: list[Any] = []

    def open(self, runtime_context: RuntimeContext) -> None:
        self.amount = runtime_context.get_state(AMOUNT)

    def process_element(self, value: Any, ctx: Any) -> None:
        self.amount.update(value[1])

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        ctx.apply_to_keyed_state(AMOUNT, lambda key, state: self.told.append((key, state.value())))


def test_expired_state_is_not_walked_over(backend: str) -> None:
    with harness_of(Amounts(), backend, broadcast_states=[RULES]) as harness:
        harness.push(("a", 1)).advance_processing_time(HOUR // 2)
        harness.push(("b", 2)).advance_processing_time(HOUR // 2)
        harness.push_broadcast("go")
        assert harness.function.told == [("b", 2)]


def test_state_of_keys_that_never_come_again_leaves_checkpoints(backend: str) -> None:
    with harness_of(Seen(an_hour()), backend) as harness:
        harness.push_all([(f"key {number}", number) for number in range(200)])
        harness.snapshot()
        harness.advance_processing_time(HOUR)
        harness.snapshot()
        assert harness.acknowledgement is not None
        (snapshot,) = harness.acknowledgement.snapshots
        assert snapshot.keyed is not None
        if backend != "rocksdb":
            assert sum(file.entries for file in snapshot.keyed.files) == 3 * 200, "a tombstone for each"
        again = harness.snapshot(full=True)
        assert again.record.subtasks[0].keyed.has_entries is False
