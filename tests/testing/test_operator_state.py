"""Functions with operator state over epochs, checkpoints, restores and rescalings, in the harness."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.common import Types
from holdfast.datastream import (
    Checkpointed,
    CheckpointedFunction,
    FlatMapFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    ListCheckpointed,
    MapFunction,
    RichMapFunction,
    RuntimeContext,
    StateInitializationContext,
    StateSnapshotContext,
    StreamOperator,
    WrappingFunction,
)
from holdfast.datastream.keyed_aggregations import state_mapper
from holdfast.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from holdfast.errors import FunctionError, ProgramError, RestoreError, StateAccessError
from holdfast.testing import HarnessSnapshot, KeyedOperatorHarness, OperatorHarness
from holdfast.types.resolve import resolve
from tests.integration.operator_functions import BETWEEN_ONES, EVENTS, CountWithOperatorState, DealtOut
from tests.testing.functions import Connection, Larger, Mean

EVERY = 7


@pytest.mark.parametrize("killed_after", range(len(EVENTS) + 1))
@pytest.mark.parametrize("another_process", [False, True])
def test_count_with_operator_state_survives_a_kill_after_any_epoch(killed_after: int, another_process: bool) -> None:
    """Epochs of one row, a checkpoint every seven, and, once, back to the last of them."""
    harness = OperatorHarness(CountWithOperatorState(), output_type=Types.STRING())
    saved: tuple[int, HarnessSnapshot] | None = None
    published: list[str] = []
    place = 0
    killed = False
    while place < len(EVENTS):
        if place == killed_after and not killed:
            killed = True
            harness.take_output()
            if saved is None:
                place, harness = 0, OperatorHarness(CountWithOperatorState(), output_type=Types.STRING())
            else:
                place = saved[0]
                harness = OperatorHarness.restore(saved[1], CountWithOperatorState(), output_type=Types.STRING())
            continue
        harness.push(EVENTS[place])
        place += 1
        if place % EVERY == 0:
            saved = place, harness.snapshot()
            published += harness.take_output()
        else:
            harness.end_epoch()
        if another_process:
            harness.forget_live_objects()
    published += harness.take_output()
    harness.close()
    assert published == BETWEEN_ONES


def test_a_union_list_dealt_out_by_position_keeps_its_elements() -> None:
    """50 epochs on 3 subtasks, then 4, then 2: three restores, two of which rescale."""
    chosen = random.Random(5)
    harnesses = OperatorHarness.parallel(3, DealtOut(range(10)))
    expected = list(range(10))
    for epoch in range(50):
        for number in range(chosen.randint(0, 3)):
            harness = chosen.choice(harnesses)
            value = 100 * (epoch + 1) + number
            harness.push(value)
            expected.append(value)
        if epoch in (12, 25, 38):
            harnesses = harnesses.rescaled({12: 3, 25: 4, 38: 2}[epoch])
        else:
            for harness in harnesses:
                harness.end_epoch()
                if chosen.random() < 0.2:
                    harness.forget_live_objects()
    shares = [harness.function.mine for harness in harnesses]
    assert sorted(number for share in shares for number in share) == sorted(expected)
    harnesses.close()


# -- contracts


class Declares(MapFunction, CheckpointedFunction):
    """Declares what it is told to, and nothing else."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        self.told = context.is_restored(), context.has_restored_state(), context.get_restored_checkpoint_id()
        store = context.get_operator_state_store()
        self.before = store.get_registered_state_names(), store.get_registered_broadcast_state_names()
        self.lists = {name: store.get_list_state(ListStateDescriptor(name, Types.LONG())) for name in self.names}

    def map(self, value: Any) -> Any:
        for held in self.lists.values():
            held.add(value)
        return value

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.snapshot = context.get_checkpoint_id(), context.get_checkpoint_timestamp()


class DeclaresMore(Declares):
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        super().initialize_state(context)
        store = context.get_operator_state_store()
        self.union = store.get_union_list_state(ListStateDescriptor("union", Types.LONG()))
        if not context.is_restored() and self.get_runtime_context().get_index_of_this_subtask() == 0:
            self.union.update([7, 8, 9])
        store.get_broadcast_state(MapStateDescriptor("rules", Types.STRING(), Types.LONG())).put("a", 1)


def test_state_that_is_not_asked_for_is_kept_over_two_checkpoints_and_a_rescaling() -> None:
    harnesses = OperatorHarness.parallel(1, DeclaresMore("a", "b")).push_all([1, 2, 3])
    for parallelism in (1, 3, 2):
        harnesses = harnesses.rescaled(parallelism, function=Declares("b"))
        for harness in harnesses:
            assert harness.function.before == ({"a", "b", "union"}, {"rules"}) or parallelism > 1
        harnesses[0].push(9)
        for harness in harnesses:
            harness.snapshot()
            harness.forget_live_objects()
    (again,) = harnesses.rescaled(1, function=DeclaresMore("a", "b"))
    function = again.function
    assert function.lists["a"].get() == [1, 2, 3]
    assert sorted(function.lists["b"].get()) == [1, 2, 3, 9, 9, 9]
    assert function.union.get() == [7, 8, 9]
    again.close()


def test_contexts_tell_where_a_job_comes_from() -> None:
    with OperatorHarness(Declares("a")) as harness:
        assert harness.function.told == (False, False, None)
        harness.push(1)
        harness.clock.advance(55)
        snapshot = harness.snapshot()
        assert harness.function.snapshot == (1, 55)
    with OperatorHarness.restore(snapshot, Declares("a")) as harness:
        assert harness.function.told == (True, True, 1)


@pytest.mark.parametrize(
    "ask",
    [
        lambda context: context.get_operator_state_store(),
        lambda context: context.get_union_list_state(ListStateDescriptor("a", Types.LONG())),
        lambda context: context.get_broadcast_state(MapStateDescriptor("a", Types.LONG(), Types.LONG())),
        lambda context: context.get_list_state(ListStateDescriptor("a", Types.LONG())),
    ],
)
def test_a_runtime_context_has_no_operator_state(ask: Any) -> None:
    class Asking(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            ask(runtime_context)

        def map(self, value: Any) -> Any:
            return value

    with pytest.raises(StateAccessError, match=r"operator 'Map'.*CheckpointedFunction"), OperatorHarness(Asking()):
        pass


class OldList(RichMapFunction, ListCheckpointed):
    def __init__(self) -> None:
        self.seen: list[int] = []

    def map(self, value: int) -> int:
        self.seen.append(value)
        return value

    def snapshot_state(self, checkpoint_id: int, timestamp: int) -> list[int]:
        return self.seen

    def restore_state(self, state: list[int]) -> None:
        self.seen = state


def test_list_checkpointed_is_split() -> None:
    with OperatorHarness(OldList()) as harness:
        snapshot = harness.push_all(range(5)).snapshot()
    harnesses = OperatorHarness.rescale(snapshot, 2, OldList())
    assert [harness.function.seen for harness in harnesses] == [[0, 1, 2], [3, 4]]
    for harness in harnesses:
        harness.push(9).snapshot()
        harness.forget_live_objects()
        assert harness.function.seen[-1] == 9
        harness.snapshot()
        harness.close()


class OldValue(MapFunction, Checkpointed):
    def __init__(self) -> None:
        self.total = 0

    def map(self, value: int) -> int:
        self.total += value
        return self.total

    def snapshot_state(self, checkpoint_id: int, checkpoint_timestamp: int) -> int | None:
        return self.total or None

    def restore_state(self, state: int) -> None:
        self.total = state


def test_checkpointed_keeps_its_parallelism() -> None:
    with OperatorHarness(OldValue()) as harness:
        empty = harness.snapshot()
        snapshot = harness.push(4).snapshot()
    with OperatorHarness.restore(empty, OldValue()) as harness:
        assert harness.function.total == 0
    with OperatorHarness.restore(snapshot, OldValue()) as harness:
        assert harness.push(5).take_output() == [9]
    two = OperatorHarness.restore(snapshot, OldValue(), parallelism=2, subtask=0)
    with pytest.raises(RestoreError, match=r"operator 'Map'.*written with parallelism 1.*now has 2.*ListCheckpointed"):
        two.open()


# -- wrapped functions


class Noisy(MapFunction, CheckpointedFunction):
    """Remembers its calls, has a field that cannot be pickled, and state."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        self.calls.append("initialize_state")
        self.stored = context.get_operator_state_store().get_list_state(ListStateDescriptor("seen", Types.LONG()))
        self.seen = self.stored.get()

    def open(self, runtime_context: RuntimeContext) -> None:
        self.calls.append("open")
        self.connection = Connection()

    def __call__(self, value: int, state: Any = None) -> Any:
        return self.map(value), 1

    def map(self, value: int) -> int:
        self.seen.append(value)
        return len(self.seen)

    def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> list[str]:
        return [f"before {checkpoint_id}"]

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.calls.append("snapshot_state")
        self.stored.update(self.seen)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.calls.append(f"complete {checkpoint_id}")

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.calls.append(f"aborted {checkpoint_id}")

    def finish(self) -> list[str]:
        return ["finished"]


class Doubling(WrappingFunction, MapFunction):
    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self.rows = 0

    def map(self, value: int) -> int:
        self.rows += 1
        return self.wrapped_function.map(value) * 2


def test_a_wrapper_passes_all_calls_on() -> None:
    harness = OperatorHarness(Doubling(Doubling(Noisy())))
    harness.push_all([5, 6])
    snapshot = harness.snapshot()
    harness.notify_checkpoint_aborted(2)
    assert harness.open().take_output() == [4, 8, "before 1"]
    inner = harness.function.wrapped_function.wrapped_function
    assert inner.calls == ["initialize_state", "open", "snapshot_state", "complete 1", "aborted 2"]
    assert inner.get_runtime_context().get_task_name() == "Map"
    harness.end_input()
    assert harness.take_output() == ["finished"]
    harness.close()
    with OperatorHarness.restore(snapshot, Doubling(Doubling(Noisy()))) as harness:
        assert harness.push(7).take_output() == [12]


def test_what_a_wrapped_function_cannot_take_along_stays_alone() -> None:
    """The connection stays behind and open() makes it again; everything else of all three functions travels."""
    harness = OperatorHarness(Doubling(Doubling(Noisy())))
    harness.push(5).end_epoch().forget_live_objects()
    assert harness.push(6).take_output() == [4, 8]
    outer = harness.function
    inner = outer.wrapped_function.wrapped_function
    assert (outer.rows, outer.wrapped_function.rows, inner.seen) == (2, 2, [5, 6])
    assert inner.connection.made_by_open
    assert inner.calls == ["initialize_state", "open"], "the list of calls came from the other process"
    harness.close()


def test_map_with_state_is_a_wrapper() -> None:
    mapper = state_mapper(Noisy(), resolve(int), flat=False)
    harness = KeyedOperatorHarness(mapper, lambda value: value, Types.LONG())
    harness.push(5).push(5)
    snapshot = harness.snapshot()
    assert harness.take_output() == [1, 2, "before 1"]
    assert harness.open().function.wrapped_function.calls[:3] == ["initialize_state", "open", "snapshot_state"]
    harness.close()
    with KeyedOperatorHarness.restore(snapshot, mapper, lambda value: value, Types.LONG()) as harness:
        assert harness.push(5).take_output() == [3]


def test_keyed_state_is_not_to_be_had_without_a_row() -> None:
    """A key that is left from the last row must not be taken for the current one."""

    class Late(MapFunction, CheckpointedFunction):
        def initialize_state(self, context: FunctionInitializationContext) -> None:
            self.count = context.get_keyed_state_store().get_state(ValueStateDescriptor("count", Types.LONG()))

        def map(self, value: int) -> int:
            self.count.update((self.count.value() or 0) + 1)
            return self.count.value()

        def snapshot_state(self, context: FunctionSnapshotContext) -> None:
            self.count.value()

    harness = KeyedOperatorHarness(Late(), lambda value: value, Types.LONG())
    assert harness.push(3).push(3).take_output() == [1, 2]
    with pytest.raises(StateAccessError, match="without a current key"):
        harness.snapshot()
    harness.close()


def test_functions_in_descriptors_have_no_operator_state() -> None:
    class WithState(Larger, CheckpointedFunction):
        initialize_state = snapshot_state = lambda self, context: None

    class MeanWithState(Mean, CheckpointedFunction):
        initialize_state = snapshot_state = lambda self, context: None

    with pytest.raises(ProgramError, match=r"Reducing state 'r' .*operator state of its own"):
        ReducingStateDescriptor("r", WithState(), Types.LONG())
    with pytest.raises(ProgramError, match=r"Aggregating state 'a' .*operator state of its own"):
        AggregatingStateDescriptor("a", MeanWithState(), Types.LONG())


# -- operators with raw state


class RawCounts(StreamOperator):
    """Counts keys in a field. Raw keyed state holds the counts per key group, raw operator state the rows since."""

    def __init__(self) -> None:
        self.counts: dict[int, dict[int, int]] = {}
        self.rows: list[int] = []

    def initialize_state(self, context: StateInitializationContext) -> None:
        for provider in context.get_raw_keyed_state_inputs():
            self.counts[provider.get_key_group_id()] = pickle.load(provider.get_stream())
        for partition in context.get_raw_operator_state_inputs():
            self.rows.append(int(partition.get_stream().read()))

    def process_element(self, value: int, ctx: Any) -> Iterator[tuple[int, int]]:
        group = self.counts.setdefault(ctx.get_current_key_group(), {})
        key = ctx.get_current_key()
        group[key] = group.get(key, 0) + 1
        self.rows.append(value)
        yield key, group[key]

    def snapshot_state(self, context: StateSnapshotContext) -> None:
        output = context.get_raw_keyed_operator_state_output()
        for group in output.get_key_group_list():
            if group in self.counts:
                output.start_new_key_group(group)
                pickle.dump(self.counts[group], output)
        partitions = context.get_raw_operator_state_output()
        for row in self.rows:
            partitions.start_new_partition()
            partitions.write(str(row).encode())


def key(value: int) -> int:
    return value % 50


@pytest.mark.parametrize("backend", ["heap", "lmdb"])
def test_raw_state_follows_key_groups_and_partitions(backend: str) -> None:
    options: dict[str, Any] = {"backend": backend, "input_type": Types.LONG()}
    rows = list(range(200))
    harnesses = KeyedOperatorHarness.parallel(2, RawCounts(), key, Types.LONG(), **options)
    expected = {number: 0 for number in range(50)}
    for parallelism in (3, 1, 5, 2):
        for row in rows:
            expected[key(row)] += 1
            assert harnesses.push(row).take_output() == [(key(row), expected[key(row)])]
        for harness in harnesses:
            harness.end_epoch().forget_live_objects()
        harnesses = harnesses.rescaled(parallelism)
    shares = [harness.open().function.rows for harness in harnesses]
    assert sorted(row for share in shares for row in share) == sorted(rows * 4)
    assert abs(len(shares[0]) - len(shares[1])) <= 1
    counted = {k: n for harness in harnesses for group in harness.function.counts.values() for k, n in group.items()}
    assert counted == expected
    harnesses.close()


def test_functions_do_not_write_raw_state() -> None:
    class Writing(FlatMapFunction, CheckpointedFunction):
        def initialize_state(self, context: FunctionInitializationContext) -> None: ...

        def flat_map(self, value: Any) -> None: ...

        def snapshot_state(self, context: Any) -> None:
            context.get_raw_operator_state_output()

    harness = OperatorHarness(Writing())
    with pytest.raises(FunctionError, match=r"snapshot_state\(\) raised AttributeError"):
        harness.snapshot()
    harness.close()


def test_a_function_in_the_place_of_an_operator_with_raw_state_is_refused() -> None:
    with KeyedOperatorHarness(RawCounts(), key, Types.LONG()) as harness:
        snapshot = harness.push(1).snapshot()
    again = KeyedOperatorHarness.restore(snapshot, lambda value: value, key, Types.LONG(), operation="map")
    with pytest.raises(RestoreError, match=r"operator 'Map' .*restored with raw keyed state"):
        again.open()


class Draining(StreamOperator):
    """Gives what it holds before each barrier, and at the end."""

    def __init__(self) -> None:
        self.held: list[int] = []

    def process_element(self, value: int, ctx: Any) -> None:
        self.held.append(value)

    def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> Iterator[int]:
        held, self.held = self.held, []
        yield from held

    finish = lambda self: self.prepare_snapshot_pre_barrier(0)  # noqa: E731


@pytest.mark.parametrize("event_time", [False, True])
def test_rows_before_the_barrier_and_at_the_end(event_time: bool) -> None:
    harness = OperatorHarness(Draining(), event_time=event_time)
    harness.push_all([1, 2])
    assert harness.output() == []
    harness.snapshot()
    assert harness.timestamped_output() == [(1, None), (2, None)]
    harness.take_output()
    harness.push(3).end_input()
    assert harness.take_output() == [3]
    harness.close()
