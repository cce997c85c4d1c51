"""State that changes its version or its name over a restore, in every kind, backend and form."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from holdfast.common import Time, Types
from holdfast.datastream.state import MapStateDescriptor, StateDescriptor, StateTtlConfig, ValueStateDescriptor
from holdfast.errors import StateDescriptorError, StateMigrationError
from holdfast.state.handles import SavepointFormat, SnapshotKind
from holdfast.testing import KeyedOperatorHarness, ManualClock
from tests.testing.migrating import (
    BACKENDS,
    FILLER,
    FULL,
    KEYS,
    STORED,
    TEXTS,
    Everything,
    Version,
    check,
    expected,
    expected_operator_state,
    first,
    reads,
    refused,
    stored,
    text_of,
)

# -- functions by version


@pytest.mark.parametrize(("backend", "form"), STORED)
def test_functions_migrate_every_kind_of_state(backend: str, form: str) -> None:
    check(stored(Version(), backend, form), TEXTS, backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_was_migrated_is_told(backend: str) -> None:
    snapshot = stored(Version(), backend, FULL)
    with KeyedOperatorHarness.restore(snapshot, Everything(TEXTS), first, Types.LONG(), backend=backend) as harness:
        reads(harness)
        harness.end_epoch()
        assert harness.acknowledgement is not None
        told = {one.state: one for one in harness.acknowledgement.migrations}
        assert set(told) == {"value", "list", "map", "reducing", "aggregating"}
        assert told["map"].versions == (0, 2) and told["map"].entries == len(FILLER) + 2 * len(KEYS)
        reads(harness)
        harness.end_epoch()
        assert harness.acknowledgement.migrations == ()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("migrated", [TEXTS, Version(value=Types.LONG())], ids=["by functions", "by type"])
def test_the_first_checkpoint_behind_a_migration_stands_alone(backend: str, migrated: Version) -> None:
    snapshot = stored(Version(), backend, "delta")
    with KeyedOperatorHarness.restore(snapshot, Everything(migrated), first, Types.LONG(), backend=backend) as harness:
        # Some epochs later, and in another process.
        reads(harness)
        harness.end_epoch().forget_live_objects()
        one = harness.push((1, 41)).snapshot().record.subtasks[0].keyed
        two = harness.push((1, 42)).snapshot().record.subtasks[0].keyed
    assert one is not None and two is not None
    if one.native is not None:
        # None of its files is of an earlier checkpoint.
        assert {file.checkpoint_id for file in one.native.files} == {snapshot.checkpoint_id + 1}
        assert two.native is not None
    else:
        written = [(file.kind, file.checkpoint_id) for file in one.files]
        assert written == [(SnapshotKind.FULL, snapshot.checkpoint_id + 1)]
        assert [file.kind for file in two.files] == [SnapshotKind.FULL, SnapshotKind.DELTA]


def dropping(descriptor: StateDescriptor) -> StateDescriptor:
    if isinstance(descriptor, MapStateDescriptor):
        return descriptor.migrate_from(0, lambda key, value: None if value % 2 else (key, value))
    return descriptor.migrate_from(0, lambda value: None if value % 2 else value)


@pytest.mark.parametrize("backend", BACKENDS)
def test_none_drops_what_was_stored(backend: str) -> None:
    snapshot = stored(Version(), backend, FULL)
    new = Everything(Version(adapt=dropping))
    with KeyedOperatorHarness.restore(snapshot, new, first, Types.LONG(), backend=backend) as harness:
        found = reads(harness)
        # The sum is even.
        assert found[3] == {"value": None, "list": [], "map": {}, "reducing": None, "aggregating": 26}
        assert found[4] == expected(4)
        even = [number for number in expected_operator_state()["split"] if number % 2 == 0]
        assert harness.function.operator_state()["split"] == even


def test_a_missing_step_is_refused_with_what_to_add() -> None:
    snapshot = stored(Version(), "heap", FULL)

    def second_step(descriptor: StateDescriptor) -> StateDescriptor:
        return descriptor.migrate_from(1, lambda *parts: parts)

    refused(snapshot, Version(adapt=second_step), r"version 0 to 1\. Add descriptor\.migrate_from\(0, function\)")


def test_state_does_not_go_back() -> None:
    snapshot = stored(Version(adapt=lambda descriptor: descriptor.version(3)), "heap", FULL)
    refused(snapshot, Version(), "has version 3, and has version 0 here")


def failing_at(number: int) -> Any:
    def adapt(descriptor: StateDescriptor) -> StateDescriptor:
        if descriptor.name != "value":
            return descriptor

        def step(value: int) -> int:
            return value if value != number else value // 0

        return descriptor.migrate_from(0, lambda value: value).migrate_from(1, step)

    return adapt


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_error_names_state_key_and_version_and_the_snapshot_stays_good(backend: str) -> None:
    snapshot = stored(Version(), backend, FULL)
    bad = Version(adapt=failing_at(25))
    refused(snapshot, bad, r"State 'value' .*key 5.*migrate_from\(1, .*ZeroDivisionError", backend=backend)
    check(snapshot, Version(), backend)


def test_a_result_of_the_wrong_type_is_an_error() -> None:
    snapshot = stored(Version(), "heap", FULL)
    wrong = Version(value=Types.LONG(), adapt=lambda d: d.migrate_from(0, str) if d.name == "value" else d)
    refused(snapshot, wrong, "State 'value'.*not of the declared type LONG")


def test_map_keys_that_become_one_are_an_error() -> None:
    snapshot = stored(Version(), "heap", FULL)
    meets = Version(adapt=lambda d: d.migrate_from(0, lambda key, value: (0, value)) if d.name == "map" else d)
    refused(snapshot, meets, "State 'map'.*two stored entries become one")


# -- names


@pytest.mark.parametrize(("backend", "form"), STORED)
def test_states_are_found_under_their_former_names(backend: str, form: str) -> None:
    kinds = ("value", "list", "map", "reducing", "aggregating", "split", "union", "broadcast")

    def renamed(descriptor: StateDescriptor) -> StateDescriptor:
        return descriptor.renamed_from("older", descriptor.name.removeprefix("new "))

    new = Version(names={kind: f"new {kind}" for kind in kinds}, adapt=renamed)
    check(stored(Version(), backend, form), new, backend, full=form == SavepointFormat.CANONICAL)


def test_a_state_cannot_come_from_two_names() -> None:
    snapshot = stored(Version(), "heap", FULL)
    operator_state = Version(adapt=lambda d: d.renamed_from("union") if d.name == "split" else d)
    with pytest.raises(StateDescriptorError, match="modes"), KeyedOperatorHarness.restore(
        snapshot, Everything(operator_state), first, Types.LONG()
    ) as harness:
        reads(harness)


# -- subtasks of which only some have migrated


class Lazy(Everything):
    """Asks for its state with the first row that comes to it."""

    def __init__(self, descriptor: ValueStateDescriptor) -> None:
        super().__init__(Version())
        self.descriptor = descriptor

    def open(self, runtime_context: Any) -> None:
        self.context = runtime_context

    def process_element(self, value: Any, ctx: Any) -> Any:
        state = self.context.get_state(self.descriptor)
        if value[1] == "read":
            yield value[0], state.value()
        else:
            state.update(value[1])


@pytest.mark.parametrize("backend", BACKENDS)
def test_forms_of_several_subtasks_are_brought_together(backend: str) -> None:
    old = ValueStateDescriptor("value", Types.INT())
    new = ValueStateDescriptor("value", Types.STRING()).migrate_from(0, str)
    with KeyedOperatorHarness(Lazy(old), first, Types.LONG(), backend=backend) as harness:
        snapshot = harness.push_all([(key, key) for key in range(20)]).snapshot()
    pair = KeyedOperatorHarness.rescale(snapshot, 2, Lazy(new), first, Types.LONG(), backend=backend)
    asked = next(key for key in range(20) if pair[0].owns((key, "read")))
    pair[0].push((asked, "read"))
    apart = [one.snapshot() for one in pair]
    for one in pair:
        one.close()
    with KeyedOperatorHarness.restore(
        apart, Lazy(new), first, Types.LONG(), backend=backend, parallelism=1
    ) as harness:
        assert reads(harness, range(20)) == {key: str(key) for key in range(20)}


# -- time to live


@pytest.mark.parametrize("backend", BACKENDS)
def test_migrated_state_keeps_the_times_of_its_accesses(backend: str) -> None:
    def expiring(descriptor: StateDescriptor) -> StateDescriptor:
        if descriptor.name in ("value", "list", "map"):
            descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.milliseconds(1000)).build())
        return descriptor

    clock = ManualClock(0)
    old = Everything(Version(adapt=expiring))
    with KeyedOperatorHarness(old, first, Types.LONG(), backend=backend, clock=clock) as harness:
        harness.push((1, 1))
        clock.advance(600)
        snapshot = harness.push((1, 2)).snapshot()
    new = replace(TEXTS, adapt=lambda descriptor: text_of(expiring(descriptor)))
    with KeyedOperatorHarness.restore(
        snapshot, Everything(new), first, Types.LONG(), backend=backend, clock=clock
    ) as harness:
        found = reads(harness, [1])[1]
        assert (found["value"], found["list"], found["map"]) == (2, [1, 2], {1: 1, 2: 2})
        clock.advance(500)
        found = reads(harness, [1])[1]
        assert (found["value"], found["list"], found["map"]) == (2, [2], {2: 2})
        clock.advance(500)
        found = reads(harness, [1])[1]
        assert (found["value"], found["list"], found["map"]) == (None, [], {})


class Two(Everything):
    """Has the same number in two states."""

    def __init__(self, *descriptors: StateDescriptor) -> None:
        super().__init__(Version())
        self.descriptors = descriptors

    def open(self, runtime_context: Any) -> None:
        self.states = [runtime_context.get_map_state(descriptor) for descriptor in self.descriptors]

    def process_element(self, value: Any, ctx: Any) -> Any:
        for number, state in enumerate(self.states):
            state.put(number, value[1])
        yield value


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_key_has_its_state_under_one_name(backend: str) -> None:
    old = [MapStateDescriptor(name, Types.LONG(), Types.LONG()) for name in ("one", "two")]
    with KeyedOperatorHarness(Two(*old), first, Types.LONG(), backend=backend) as harness:
        snapshot = harness.push((1, 1)).snapshot()
    both = MapStateDescriptor("one", Types.LONG(), Types.LONG()).renamed_from("two")
    with pytest.raises(StateMigrationError, match="key 1: the state is stored under two names"):  # noqa: SIM117 - the harness must see the error first
        with KeyedOperatorHarness.restore(snapshot, Two(both), first, Types.LONG(), backend=backend) as harness:
            harness.push((1, 1))


@pytest.mark.parametrize("form", [FULL, SavepointFormat.CANONICAL.value])
@pytest.mark.parametrize(("old", "new"), [("heap", "rocksdb"), ("rocksdb", "lmdb"), ("lmdb", "heap")])
def test_migrated_into_another_backend(old: str, new: str, form: str) -> None:
    check(stored(Version(), old, form), TEXTS, new)


