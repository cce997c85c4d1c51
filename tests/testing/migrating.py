"""A function with state of every kind, run, stored in every form, and restored by another version of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from holdfast.common import Types
from holdfast.datastream import (
    AggregateFunction,
    CheckpointedFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    KeyedProcessFunction,
    RuntimeContext,
)
from holdfast.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from holdfast.errors import StateMigrationError
from holdfast.state.handles import CheckpointRequest, SavepointFormat, SnapshotKind, SnapshotType
from holdfast.state.snapshot_files import MemorySnapshotWriter
from holdfast.testing import HarnessSnapshot, KeyedOperatorHarness
from tests.state.stores import LMDB_IMAGE

BACKENDS = ("heap", "lmdb", LMDB_IMAGE, "rocksdb")
FULL, DELTA = "full", "delta"
#: In what a job may be restored from.
FORMS = (FULL, DELTA, *(one.value for one in SavepointFormat))
KEYS = range(12)
#: What state may be restored into, and from.
STORED = [(backend, form) for backend in BACKENDS for form in FORMS]
#: So much state that a delta is cheaper than a new image.
FILLER = range(1000, 1200)


class Total(AggregateFunction):
    """Adds numbers; the accumulator is whatever ``make`` makes of the sum."""

    def __init__(self, make: Callable[[int], Any], read: Callable[[Any], int]) -> None:
        self.make, self.read = make, read

    def create_accumulator(self) -> Any:
        return self.make(0)

    def add(self, value: int, accumulator: Any) -> Any:
        return self.make(self.read(accumulator) + value)

    def get_result(self, accumulator: Any) -> int:
        return self.read(accumulator)

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return self.make(self.read(acc_a) + self.read(acc_b))


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Version:
    """One version of the program: its types, how it makes values of numbers and reads them, and what it does to its
    descriptors.
    """

    value: Any = field(default_factory=Types.INT)
    map_key: Any = field(default_factory=Types.INT)
    make: Callable[[int], Any] = _same
    read: Callable[[Any], int] = _same
    make_map_key: Callable[[int], Any] = _same
    read_map_key: Callable[[Any], int] = _same
    adapt: Callable[[StateDescriptor], StateDescriptor] = _same
    names: dict[str, str] = field(default_factory=dict)

    def descriptors(self) -> dict[str, Any]:
        def called(kind: str) -> str:
            return self.names.get(kind, kind)

        def larger(first: Any, second: Any) -> Any:
            return max(first, second, key=self.read)

        made = {
            "value": ValueStateDescriptor(called("value"), self.value),
            "list": ListStateDescriptor(called("list"), self.value),
            "map": MapStateDescriptor(called("map"), self.map_key, self.value),
            "reducing": ReducingStateDescriptor(called("reducing"), larger, self.value),
            "aggregating": AggregatingStateDescriptor(
                called("aggregating"), Total(self.make, self.read), self.value
            ),
            "split": ListStateDescriptor(called("split"), self.value),
            "union": ListStateDescriptor(called("union"), self.value),
            "broadcast": MapStateDescriptor(called("broadcast"), self.map_key, self.value),
        }
        return {kind: self.adapt(descriptor) for kind, descriptor in made.items()}


class Everything(KeyedProcessFunction, CheckpointedFunction):
    """Puts each row's number into every kind of state, and tells what is there: a row (key, "read") asks for it."""

    def __init__(self, version: Version) -> None:
        self.version = version
        self.given = version.descriptors()

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        store = context.get_operator_state_store()
        self.split = store.get_list_state(self.given["split"])
        self.union = store.get_union_list_state(self.given["union"])
        self.broadcast = store.get_broadcast_state(self.given["broadcast"])

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        """Operator state is changed as rows come."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.value = runtime_context.get_state(self.given["value"])
        self.list = runtime_context.get_list_state(self.given["list"])
        self.map = runtime_context.get_map_state(self.given["map"])
        self.reducing = runtime_context.get_reducing_state(self.given["reducing"])
        self.aggregating = runtime_context.get_aggregating_state(self.given["aggregating"])

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[Any]:
        key, number = value
        version = self.version
        if number == "read":
            yield key, self._seen()
            return
        made = version.make(number)
        self.value.update(made)
        self.list.add(made)
        self.map.put(version.make_map_key(number), made)
        self.reducing.add(made)
        self.aggregating.add(number)
        ctx.timer_service().register_event_time_timer(number)
        if number < 100:
            self.split.add(made)
            self.union.add(made)
            self.broadcast.put(version.make_map_key(number), made)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield ctx.get_current_key(), f"timer {timestamp}"

    def _seen(self) -> dict[str, Any]:
        version = self.version
        value, reduced = self.value.value(), self.reducing.get()
        return {
            "value": None if value is None else version.read(value),
            "list": [version.read(one) for one in self.list.get()],
            "map": {version.read_map_key(key): version.read(one) for key, one in self.map.items()},
            "reducing": None if reduced is None else version.read(reduced),
            "aggregating": self.aggregating.get(),
        }

    def operator_state(self) -> dict[str, Any]:
        version = self.version
        return {
            "split": [version.read(one) for one in self.split.get()],
            "union": [version.read(one) for one in self.union.get()],
            "broadcast": {version.read_map_key(key): version.read(one) for key, one in self.broadcast.items()},
        }


def first(row: Any) -> Any:
    return row[0]


def stored(version: Version, backend: str, form: str, key_type: Any = None) -> HarnessSnapshot:
    """Two rows of every key, the second one behind the base of the delta."""
    harness = KeyedOperatorHarness(Everything(version), first, key_type or Types.LONG(), backend=backend)
    with harness:
        harness.push_all([(key, key) for key in KEYS])
        harness.push_all([(key, key) for key in FILLER])
        if form == DELTA:
            harness.snapshot()
        harness.push_all([(key, key + 20) for key in KEYS])
        if form in (FULL, DELTA):
            snapshot = harness.snapshot()
            keyed = snapshot.record.subtasks[0].keyed
            assert keyed is not None
            if form == DELTA and keyed.native is None:
                assert [file.kind for file in keyed.files] == [SnapshotKind.FULL, SnapshotKind.DELTA]
            return snapshot
        savepoint = SavepointFormat(form)
        request = CheckpointRequest(
            9, SnapshotType.SAVEPOINT, 0, 1, harness.epoch + 1, savepoint_format=savepoint
        )
        written = harness.checkpoint(request, MemorySnapshotWriter(1 << 26))
        return HarnessSnapshot.of_one(harness._program.operator, request, written)


def expected(key: int) -> dict[str, Any]:
    """What a key of ``stored`` has."""
    both = [key, key + 20]
    return {
        "value": key + 20,
        "list": both,
        "map": {number: number for number in both},
        "reducing": key + 20,
        "aggregating": sum(both),
    }


def expected_operator_state() -> dict[str, Any]:
    numbers = [*KEYS, *(key + 20 for key in KEYS)]
    return {"split": numbers, "union": numbers, "broadcast": {number: number for number in numbers}}


def timers_of(rows: Iterable[Any]) -> list[Any]:
    return sorted((key, what) for key, what in rows if isinstance(what, str))


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
