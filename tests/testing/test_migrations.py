"""State that changes its type, its version, its name or its keys over a restore, in every kind, backend and form."""

from __future__ import annotations

import re
from dataclasses import dataclass, make_dataclass, replace
from typing import Any, NamedTuple

import msgspec
import pytest

from holdfast.common import Configuration, Row, Time, Types
from holdfast.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from holdfast.datastream.state import MapStateDescriptor, StateDescriptor, StateTtlConfig, ValueStateDescriptor
from holdfast.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from holdfast.errors import ProgramError, StateDescriptorError, StateMigrationError
from holdfast.state.handles import SavepointFormat, SnapshotKind
from holdfast.testing import HarnessSnapshot, KeyedOperatorHarness, ManualClock
from tests.testing.migrating import (
    BACKENDS,
    FORMS,
    FULL,
    KEYS,
    Everything,
    Version,
    expected,
    expected_operator_state,
    first,
    stored,
    timers_of,
)

STORED = [(backend, form) for backend in BACKENDS for form in FORMS]


def reads(harness: KeyedOperatorHarness, keys: Any = KEYS) -> dict[Any, Any]:
    harness.push_all([(key, "read") for key in keys])
    return dict(harness.take_output())


def check(snapshot: HarnessSnapshot, version: Version, backend: str, full: bool = False) -> None:
    """All of it is there, and the next checkpoint is good again. ``full``: it is asked to be a full one."""
    with KeyedOperatorHarness.restore(snapshot, Everything(version), first, Types.LONG(), backend=backend) as harness:
        assert reads(harness) == {key: expected(key) for key in KEYS}
        assert harness.function.operator_state() == expected_operator_state()
        harness.push_all([(key, key + 40) for key in KEYS])
        again = harness.snapshot(full)
    with KeyedOperatorHarness.restore(again, Everything(version), first, Types.LONG(), backend=backend) as harness:
        found = reads(harness)
        assert {key: one["list"] for key, one in found.items()} == {key: [key, key + 20, key + 40] for key in KEYS}
        assert {key: one["aggregating"] for key, one in found.items()} == {key: 3 * key + 60 for key in KEYS}
        harness.advance_watermark(100)
        due = sorted((key, f"timer {key + more}") for key in KEYS for more in (0, 20, 40))
        assert timers_of(harness.take_output()) == due


def refused(
    snapshot: HarnessSnapshot, version: Version, match: str, key_type: Any = None, **options: Any
) -> None:
    """The restore fails with what ``match`` says."""
    with pytest.raises(StateMigrationError, match=match):  # noqa: SIM117 - the harness must see the error first
        with KeyedOperatorHarness.restore(
            snapshot, Everything(version), first, key_type or Types.LONG(), **options
        ) as harness:
            reads(harness)


# -- types that evolve


def row_version(names: str, read: str) -> Version:
    types = [Types.INT() if name == "n" else Types.STRING() for name in names]

    def make(number: int) -> Row:
        return Row(**{name: number if name == "n" else f"{name}{number}" for name in names})

    return Version(value=Types.ROW_NAMED(list(names), types), make=make, read=lambda row: row[read])


def only_number(found: dict[int, float]) -> int:
    (number,) = found.values()
    return int(number)


EVOLUTIONS = {
    "int to long": (Version(), Version(value=Types.LONG(), map_key=Types.LONG())),
    "fields added, removed, reordered": (row_version("an", "n"), row_version("nb", "n")),
    "in lists": (
        Version(value=Types.LIST(Types.INT()), make=lambda n: [n], read=lambda found: found[0]),
        Version(value=Types.LIST(Types.LONG()), make=lambda n: [n], read=lambda found: found[0]),
    ),
    "in maps": (
        Version(value=Types.MAP(Types.INT(), Types.FLOAT()), make=lambda n: {n: n}, read=only_number),
        Version(value=Types.MAP(Types.LONG(), Types.DOUBLE()), make=lambda n: {n: n}, read=only_number),
    ),
    "rows as map keys": (
        Version(map_key="a INT, b STRING", make_map_key=lambda n: Row(a=n, b="x"), read_map_key=lambda key: key.a),
        Version(
            map_key="c STRING, b STRING, a BIGINT",
            make_map_key=lambda n: Row(a=n, b="x", c=None),
            read_map_key=lambda key: key.a,
        ),
    ),
}


@pytest.mark.parametrize(("backend", "form"), STORED)
@pytest.mark.parametrize("change", EVOLUTIONS)
def test_declared_types_evolve(change: str, backend: str, form: str) -> None:
    old, new = EVOLUTIONS[change]
    check(stored(old, backend, form), new, backend)


REFUSALS = {
    "narrower": (Version(value=Types.LONG()), Version(value=Types.INT()), "LONG", "INT"),
    "another type": (Version(), Version(value=Types.STRING(), make=str, read=int), "INT", "STRING"),
    "a map key without a field": (
        Version(map_key="a INT, b STRING", make_map_key=lambda n: Row(a=n, b="x"), read_map_key=lambda key: key.a),
        Version(map_key="a INT", make_map_key=lambda n: Row(a=n), read_map_key=lambda key: key.a),
        "ROW<a: INT, b: STRING>",
        "ROW<a: INT>",
    ),
}


@pytest.mark.parametrize("change", REFUSALS)
def test_other_types_are_refused_with_both_of_them(change: str) -> None:
    old, new, was, now = REFUSALS[change]
    refused(stored(old, "heap", FULL), new, f"(?=.*{re.escape(was)})(?=.*{re.escape(now)})")


# -- classes


class Named(NamedTuple):
    n: int
    label: str = "none"


class NamedWithoutLabel(NamedTuple):
    n: int


class Struct(msgspec.Struct):
    n: int
    label: str = "none"


@dataclass
class Data:
    n: int
    label: str = "none"


def class_version(cls: Any) -> Version:
    return Version(value=cls, make=lambda n: cls(n), read=lambda found: found.n)


def before(cls: Any) -> Any:
    """The class as it was before it had a label."""
    if cls is Named:
        return type("Named", (NamedWithoutLabel,), {"__module__": __name__, "__qualname__": "Named"})
    if cls is Struct:
        return msgspec.defstruct("Struct", [("n", int)], module=__name__)
    return make_dataclass("Data", [("n", int)], namespace={"__module__": __name__})


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("cls", [Named, Struct, Data], ids=lambda cls: cls.__name__)
def test_a_field_with_a_default_is_added_to_a_class(cls: Any, form: str) -> None:
    snapshot = stored(class_version(before(cls)), "rocksdb", form)
    new = class_version(cls)
    with KeyedOperatorHarness.restore(snapshot, Everything(new), first, Types.LONG(), backend="rocksdb") as harness:
        assert harness.state(new.descriptors()["value"], 3) == cls(23, "none")
        assert reads(harness) == {key: expected(key) for key in KEYS}


def test_an_avro_schema_follows_its_defaults() -> None:
    def schema(*fields: Any) -> Version:
        record = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}, *fields]}
        return Version(value=Types.AVRO(record), make=lambda n: (n, *["x"] * len(fields)), read=lambda row: row[0])

    snapshot = stored(schema(), "lmdb", FULL)
    new = schema({"name": "label", "type": "string", "default": "none"})
    with KeyedOperatorHarness.restore(snapshot, Everything(new), first, Types.LONG(), backend="lmdb") as harness:
        assert harness.state(new.descriptors()["value"], 3) == Row("n", "label")(23, "none")


# -- functions by version


def text_of(descriptor: StateDescriptor) -> StateDescriptor:
    """From numbers through pairs to texts, in two steps."""
    if isinstance(descriptor, MapStateDescriptor):
        descriptor.migrate_from(0, lambda key, value: ((key, "k"), (value, "v")))
        return descriptor.migrate_from(1, lambda key, value: (f"key {key[0]}", f"number {value[0]}"))
    return descriptor.migrate_from(0, lambda value: (value, "v")).migrate_from(1, lambda value: f"number {value[0]}")


def number_in(text: str) -> int:
    return int(text.split()[-1])


TEXTS = Version(
    value=Types.STRING(),
    map_key=Types.STRING(),
    make=lambda number: f"number {number}",
    read=number_in,
    make_map_key=lambda number: f"key {number}",
    read_map_key=number_in,
    adapt=text_of,
)


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
        assert told["map"].versions == (0, 2) and told["map"].entries == 400 + 2 * len(KEYS)
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


# -- keys


def text_keys(stream: Any, function: Any) -> Any:
    return stream.migrate_key_from(0, lambda key: f"key {key}").process(function)


def key_of(number: int) -> str:
    return f"key {number}"


@pytest.mark.parametrize(("backend", "form"), STORED)
@pytest.mark.parametrize("parallelism", [1, 3])
def test_keys_change_and_everything_moves_along(backend: str, form: str, parallelism: int) -> None:
    snapshot = stored(Version(), backend, form)
    harnesses = KeyedOperatorHarness.rescale(
        snapshot, parallelism, Everything(TEXTS), first, Types.STRING(), backend=backend, operation=text_keys
    )
    found: dict[Any, Any] = {}
    timers: list[Any] = []
    for harness in harnesses:
        with harness:
            found.update(reads(harness, [key_of(key) for key in KEYS if harness.owns((key_of(key), "read"))]))
            harness.end_epoch()
            assert harness.acknowledgement is not None
            assert harness.acknowledgement.migrations[0].state == "*"
            keyed = harness.snapshot().record.subtasks[0].keyed
            assert keyed is not None and keyed.key_version == 1 and keyed.stands_alone
            harness.advance_watermark(100)
            timers += timers_of(harness.take_output())
    assert found == {key_of(key): expected(key) for key in KEYS}
    assert sorted(timers) == sorted((key_of(key), f"timer {key + more}") for key in KEYS for more in (0, 20))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_key_type_that_keeps_its_hash_evolves(backend: str) -> None:
    snapshot = stored(Version(), backend, FULL, Types.SHORT())
    with KeyedOperatorHarness.restore(snapshot, Everything(Version()), first, Types.INT(), backend=backend) as harness:
        assert reads(harness) == {key: expected(key) for key in KEYS}
        again = harness.push((1, 41)).snapshot()
    with KeyedOperatorHarness.restore(again, Everything(Version()), first, Types.INT(), backend=backend) as harness:
        assert reads(harness)[1]["list"] == [1, 21, 41]


def test_a_key_type_that_changes_its_hash_is_refused() -> None:
    snapshot = stored(Version(), "heap", FULL, Types.INT())
    refused(snapshot, Version(), "was INT .* is LONG now.*hash.*migrate_key_from")


def halves(stream: Any, function: Any) -> Any:
    return stream.migrate_key_from(0, lambda key: key // 2).process(function)


@pytest.mark.parametrize("backend", BACKENDS)
def test_keys_that_become_one_are_named(backend: str) -> None:
    snapshot = stored(Version(), backend, FULL)
    told = r"makes one key of several: 0 and 1 become 0; 2 and 3 become 1; .*, and 201 more.*merge="
    refused(snapshot, Version(), told, backend=backend, operation=halves)
    check(snapshot, Version(), backend)


def merged_halves(stream: Any, function: Any) -> Any:
    return stream.migrate_key_from(0, lambda key: key // 2, merge=lambda name, a, b: max(a, b)).process(function)


@pytest.mark.parametrize(("backend", "form"), STORED)
def test_keys_that_become_one_are_merged(backend: str, form: str) -> None:
    snapshot = stored(Version(), backend, form)
    with KeyedOperatorHarness.restore(
        snapshot, Everything(Version()), first, Types.LONG(), backend=backend, operation=merged_halves
    ) as harness:
        found = reads(harness, range(6))
        assert found[2] == {
            "value": 25,
            "list": [4, 24, 5, 25],
            "map": {n: n for n in (4, 24, 5, 25)},
            "reducing": 25,
            "aggregating": 30,
        }
        harness.push((2, 50)).advance_watermark(100)
        timers = [what for key, what in timers_of(harness.take_output()) if key == 2]
        assert sorted(timers) == ["timer 24", "timer 25", "timer 4", "timer 5", "timer 50"]


def test_an_error_in_a_key_migration_names_the_key() -> None:
    def dividing(stream: Any, function: Any) -> Any:
        return stream.migrate_key_from(0, lambda key: 12 // (key - 7)).process(function)

    told = r"key 7 .*migrate_key_from\(0, .*ZeroDivisionError"
    refused(stored(Version(), "heap", FULL), Version(), told, operation=dividing)


# -- time to live, windows, two streams


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


class Sum(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield key, context.window().start, sum(number for _, number in elements)


WINDOWS = {"tumbling": TumblingEventTimeWindows.of(10), "sessions": EventTimeSessionWindows.with_gap(5)}


def in_windows(assigner: Any, keys: Any = None, merge: Any = None) -> Any:
    def operation(stream: Any, function: Any) -> Any:
        stream = stream if keys is None else stream.migrate_key_from(0, keys, merge)
        return stream.window(assigner).process(function, Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()]))

    return operation


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", WINDOWS)
def test_windows_move_with_their_keys(kind: str, backend: str) -> None:
    given: Any = {"backend": backend, "operation": in_windows(WINDOWS[kind])}
    with KeyedOperatorHarness(Sum(), first, Types.LONG(), **given) as harness:
        for number in range(8):
            harness.push((number, 1), timestamp=number)
        snapshot = harness.snapshot()
    given["operation"] = in_windows(WINDOWS[kind], lambda key: f"key {key}")
    with KeyedOperatorHarness.restore(snapshot, Sum(), first, Types.STRING(), **given) as harness:
        harness.push(("key 3", 10), timestamp=4).advance_watermark(100)
        start = {"tumbling": lambda number: 0, "sessions": lambda number: number}[kind]
        expected_sums = [(f"key {n}", start(n), 11 if n == 3 else 1) for n in range(8)]
        assert sorted(harness.take_output()) == expected_sums


def test_sessions_of_two_keys_cannot_become_those_of_one() -> None:
    operation = in_windows(WINDOWS["sessions"])
    with KeyedOperatorHarness(Sum(), first, Types.LONG(), operation=operation) as harness:
        snapshot = harness.push((0, 1), timestamp=1).push((1, 1), timestamp=2).snapshot()
    with pytest.raises(StateMigrationError, match="windows that merge"), KeyedOperatorHarness.restore(
        snapshot,
        Sum(),
        first,
        Types.LONG(),
        operation=in_windows(WINDOWS["sessions"], lambda key: 7, lambda name, one, two: one),
    ) as harness:
        harness.push((7, 1), timestamp=3)


def test_two_streams_of_one_operator_have_keys_of_one_version() -> None:
    env = StreamExecutionEnvironment(Configuration())
    streams = [env.from_collection([], Types.LONG()).key_by(lambda row: row, Types.LONG()) for _ in range(2)]
    migrated = [stream.migrate_key_from(0, lambda key: key + 1) for stream in streams]
    migrated[0].connect(migrated[1])
    with pytest.raises(ProgramError, match="version 1, those of the second 0"):
        migrated[0].connect(streams[1])
    with pytest.raises(ProgramError, match="expected a function"):
        streams[0].migrate_key_from(0, str, merge="sum")
    assert streams[0].key_version(4)._key_by.migrations.versions.current == 4


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
    with pytest.raises(StateMigrationError, match="key 1: the state is stored under two names"):  # noqa: SIM117
        with KeyedOperatorHarness.restore(snapshot, Two(both), first, Types.LONG(), backend=backend) as harness:
            harness.push((1, 1))
