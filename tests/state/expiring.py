"""States with a time to live for tests: one descriptor of each kind, and snapshots of a subtask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast.common import Time
from holdfast.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from holdfast.state.handles import CheckpointRequest, KeyedSnapshot, SnapshotType
from holdfast.state.keyed_backend import KeyedScope
from holdfast.state.restore import KeyedShare, restore_into
from holdfast.state.snapshots import async_write, sync_prepare
from holdfast.state.store import Stamp
from holdfast.state.ttl_config import StateTtlConfig, StateTtlConfigBuilder
from tests.state.backend_under_test import Subtask
from tests.state.snapshot_memory import MemoryFiles
from tests.state.stores import make_backend

#: Milliseconds that everything here lives.
TTL = 100


class Total:
    """An AggregateFunction whose accumulator is (sum, count) and whose result is a text."""

    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: int, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> str:
        return f"{accumulator[0]} of {accumulator[1]}"

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


def builder(ttl: int = TTL) -> StateTtlConfigBuilder:
    return StateTtlConfig.new_builder(Time.milliseconds(ttl))


def descriptor(kind: str, config: StateTtlConfig | None = None, type_info: Any = "bigint") -> StateDescriptor:
    """A state whose name is its kind; of tuples for aggregating state, else of ``type_info``."""
    made: StateDescriptor = {
        "value": lambda: ValueStateDescriptor("value", type_info),
        "list": lambda: ListStateDescriptor("list", type_info),
        "map": lambda: MapStateDescriptor("map", "string", type_info),
        "reducing": lambda: ReducingStateDescriptor("reducing", lambda left, right: left + right, type_info),
        "aggregating": lambda: AggregatingStateDescriptor("aggregating", Total(), tuple[int, int]),
    }[kind]()
    if config is not None:
        made.enable_time_to_live(config)
    return made


KINDS = ("aggregating", "list", "map", "reducing", "value")


def put(state: Any, kind: str, number: int) -> None:
    """Write something to a state of any kind."""
    if kind == "value":
        state.update(number)
    elif kind == "map":
        state.put(f"entry {number}", number)
    else:
        state.add(number)


def content(state: Any, kind: str) -> Any:
    """What a state of any kind holds; None when nothing."""
    found = dict(state.items()) if kind == "map" else state.value() if kind == "value" else state.get()
    return found or None


def expected(kind: str, number: int) -> Any:
    """The content after one ``put``."""
    return {"map": {f"entry {number}": number}, "list": [number], "aggregating": f"{number} of 1"}.get(kind, number)


def snapshot(task: Subtask, files: MemoryFiles, base_epoch: int | None = None) -> KeyedSnapshot:
    """What the running epoch gives for a checkpoint; ``base_epoch`` asks for a delta."""
    epoch = task.stamp.epoch + 1
    request = CheckpointRequest(epoch, SnapshotType.CHECKPOINT, 0, 1, epoch, base_epoch)
    return async_write(sync_prepare(task.backend, request, "counter", 0), files, f"keyed-{epoch}")


def restored(
    task: Subtask,
    directory: Path,
    found: list[KeyedSnapshot],
    files: MemoryFiles,
    name: str | None = None,
    scope: KeyedScope | None = None,
) -> Subtask:
    """A subtask that starts from snapshots, with the clock of ``task``."""
    name, scope = name or task.name, scope or task.scope
    store = make_backend(name).open(directory)
    restore_into(store, KeyedShare.of(found, scope.key_groups), files, Stamp(task.stamp.epoch, "restored"), task.clock)
    store.close()
    return Subtask(name, directory, scope, task.cache_limit, task.clock)
