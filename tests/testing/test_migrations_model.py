"""A job that is upgraded again and again, at random, against a plain dict."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import pytest

from holdfast.common import Types
from holdfast.datastream import KeyedProcessFunction, RuntimeContext
from holdfast.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from holdfast.testing import HarnessSnapshot, KeyedOperatorHarness

NUMBERS = range(30)
UPGRADES = 6


def value_of(version: int, number: int) -> Any:
    """How a version stores a number: as an integer, a text or a pair."""
    return [number, f"v{version}: {number}", (version, number)][version % 3]


def number_in(version: int, value: Any) -> int:
    return [lambda: value, lambda: int(value.split()[1]), lambda: value[1]][version % 3]()


def type_of(version: int) -> Any:
    return [Types.LONG(), Types.STRING(), Types.TUPLE([Types.INT(), Types.LONG()])][version % 3]


def key_of(version: int, number: int) -> Any:
    return [number, f"key {number}"][version % 2]


def next_value(version: int) -> Any:
    return lambda value: value_of(version + 1, number_in(version, value))


def next_key(version: int) -> Any:
    return lambda key: key_of(version + 1, int(str(key).removeprefix("key ")))


class Program(KeyedProcessFunction):
    """One version: the numbers of each key in a value, a list and a map, and a timer for each."""

    def __init__(self, version: int, oldest: int) -> None:
        self.version = version
        self.oldest = oldest

    def open(self, runtime_context: RuntimeContext) -> None:
        stored = type_of(self.version)
        value, elements = ValueStateDescriptor("last", stored), ListStateDescriptor("all", stored)
        entries = MapStateDescriptor(f"map of {self.version}", stored, stored)
        for descriptor in (value, elements, entries):
            descriptor.version(self.version)
        entries.renamed_from(*(f"map of {old}" for old in range(self.oldest, self.version)))
        for old in range(self.oldest, self.version):
            step = next_value(old)
            value.migrate_from(old, step)
            elements.migrate_from(old, step)
            entries.migrate_from(old, lambda key, number, step=step: (step(key), step(number)))
        self.value = runtime_context.get_state(value)
        self.elements = runtime_context.get_list_state(elements)
        self.entries = runtime_context.get_map_state(entries)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[Any]:
        number = value[1]
        if number is None:
            yield value[0], self._content()
            return
        stored = value_of(self.version, number)
        self.value.update(stored)
        self.elements.add(stored)
        self.entries.put(stored, stored)
        ctx.timer_service().register_event_time_timer(number)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield ctx.get_current_key(), timestamp

    def _content(self) -> Any:
        def read(value: Any) -> int:
            return number_in(self.version, value)

        entries = {read(key): read(value) for key, value in self.entries.items()}
        return read(self.value.value()), [read(one) for one in self.elements.get()], entries


class Job:
    """All subtasks of the newest version, and what they must hold: by number of the key the numbers it was given."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.version = self.key_version = 0
        self.expected: dict[int, list[int]] = {}
        self.given = 0
        self.snapshots: list[HarnessSnapshot] = []

    def upgrade(self) -> None:
        """Start another version, maybe with other keys, subtasks and backend, from what the last one stored."""
        before, keys_before = self.version, self.key_version
        if self.snapshots:
            self.version += self.chance.randrange(3)
            self.key_version += self.chance.randrange(2)

        def operation(stream: Any, function: Any) -> Any:
            for old in range(keys_before, self.key_version):
                stream = stream.migrate_key_from(old, next_key(old))
            return stream.key_version(self.key_version).process(function)

        key_type = [Types.LONG(), Types.STRING()][self.key_version % 2]
        program = Program(self.version, before), lambda row: row[0], key_type
        options: Any = {"backend": self.chance.choice(["heap", "lmdb", "rocksdb"]), "operation": operation}
        if self.snapshots:
            parallelism = self.chance.randrange(1, 4)
            self.subtasks = KeyedOperatorHarness.rescale(self.snapshots, parallelism, *program, **options)
        else:
            self.subtasks = [KeyedOperatorHarness(*program, **options)]

    def rows(self) -> None:
        for _ in range(self.chance.randrange(1, 40)):
            number = self.chance.choice(NUMBERS)
            self.given += 1
            self._push((key_of(self.key_version, number), self.given))
            self.expected.setdefault(number, []).append(self.given)

    def check(self) -> None:
        for number, numbers in self.expected.items():
            key = key_of(self.key_version, number)
            assert self._push((key, None)) == [(key, (numbers[-1], numbers, {one: one for one in numbers}))]

    def store(self) -> None:
        for subtask in self.subtasks:
            if self.chance.random() < 0.5:
                subtask.snapshot()
        self.snapshots = [subtask.snapshot() for subtask in self.subtasks]
        for subtask in self.subtasks:
            subtask.close()

    def timers(self) -> list[Any]:
        fired: list[Any] = []
        for subtask in self.subtasks:
            fired += subtask.advance_watermark(10**9).take_output()
        return sorted(fired)

    def _push(self, row: Any) -> list[Any]:
        owner = next(subtask for subtask in self.subtasks if subtask.owns(row))
        return owner.push(row).take_output()


@pytest.mark.parametrize("seed", range(6))
def test_upgrades_in_any_order(seed: int) -> None:
    job = Job(seed)
    for _ in range(UPGRADES):
        job.upgrade()
        job.check()
        job.rows()
        job.store()
    job.upgrade()
    job.check()
    due = [(key_of(job.key_version, number), one) for number, numbers in job.expected.items() for one in numbers]
    assert job.timers() == sorted(due)
    for subtask in job.subtasks:
        subtask.close()
