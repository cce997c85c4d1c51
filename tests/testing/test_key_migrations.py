"""Keys that change over a restore, with all state, timers and windows."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.common import Configuration, Types
from holdfast.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from holdfast.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from holdfast.errors import ProgramError, StateMigrationError
from holdfast.state import key_collisions
from holdfast.testing import KeyedOperatorHarness
from tests.testing.migrating import (
    BACKENDS,
    FULL,
    KEYS,
    STORED,
    TEXTS,
    Everything,
    Version,
    check,
    expected,
    first,
    reads,
    refused,
    stored,
    timers_of,
)


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
    told = r"makes one key of several: 0 and 1 become 0; 2 and 3 become 1; .*, and 101 more.*merge="
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


def test_keys_are_merged_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_collisions, "_KEYS_AT_ONCE", 3)
    monkeypatch.setattr(key_collisions, "_PAIRS", 10)
    snapshot = stored(Version(), "heap", FULL)
    with KeyedOperatorHarness.restore(
        snapshot, Everything(Version()), first, Types.LONG(), operation=merged_halves
    ) as harness:
        found = reads(harness, range(6))
        assert {key: one["list"] for key, one in found.items()} == {
            key: [2 * key, 2 * key + 20, 2 * key + 1, 2 * key + 21] for key in range(6)
        }
