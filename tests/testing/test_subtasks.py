"""Harnesses from snapshots in one line, all subtasks as one, and what failed assertions say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.common import Types
from holdfast.datastream import MapFunction
from holdfast.errors import ProgramError, RestoreError
from holdfast.testing import KeyedOperatorHarness, ManualClock, OperatorHarness
from tests.testing.functions import LIST, MAP, SUM, Buffering, CountWithKeyedState, Everything


def first(row: Any) -> Any:
    return row[0]


def averages(**options: Any) -> KeyedOperatorHarness:
    return KeyedOperatorHarness(CountWithKeyedState(), first, Types.STRING(), **options)


@pytest.mark.parametrize("backend", ["heap", "lmdb", "rocksdb"])
def test_restored_and_rescaled_in_one_line(backend: str) -> None:
    harness = averages(backend=backend).push(("a", 3)).push(("b", 1))
    harness = harness.restored()
    assert (harness.attempt, harness.push(("a", 5)).output()) == (2, [])
    with harness.rescaled(3) as three:
        assert len(three) == 3 and sum(subtask.owns(("a", 0)) for subtask in three) == 1
        assert three.push(("a", 8)).take_output() == [("a", 5)]
        three.assert_state(SUM, {"b": (1, 1)})
        assert three.state(SUM, "b") == (1, 1)
        with three.rescaled(2) as two:
            assert two.push_all([("b", 1), ("b", 2)]).end_epoch().output() == [("b", 1)]
            with two.restored() as again:
                again.assert_state(SUM, {})
                assert [subtask.attempt for subtask in again] == [5, 5]


class Doubled(CountWithKeyedState):
    def flat_map(self, value: Any) -> Iterator[Any]:
        for key, average in super().flat_map(value) or ():
            yield key, 2 * average


def test_a_restore_with_another_function_and_other_options() -> None:
    harness = averages().push(("a", 3)).push(("a", 3))
    with harness.restored(function=Doubled(), backend="lmdb") as again:
        assert again.push(("a", 3)).output() == [("a", 6)]
    with pytest.raises(ProgramError, match="no option 'bakend'"):
        averages().restored(bakend="lmdb")


def test_an_earlier_snapshot() -> None:
    harness = averages().push(("a", 3))
    snapshot = harness.snapshot()
    with harness.push(("a", 3)).restored(snapshot) as again:
        again.assert_state(SUM, {"a": (1, 3)})


def test_a_harness_is_closed_when_another_one_has_taken_its_place() -> None:
    harness = averages()
    with harness.restored(), pytest.raises(ProgramError, match="closed"):
        harness.push(("a", 1))


def test_one_of_several_subtasks_cannot_be_restored_alone() -> None:
    harness = averages(parallelism=2, subtask=0)
    with pytest.raises(RestoreError, match=r"subtasks \[0\]"):
        harness.restored()


def test_a_shared_clock_is_moved_once() -> None:
    harness = KeyedOperatorHarness(Everything(), first, Types.STRING(), clock=ManualClock(100))
    rows = [(key, "processing", 150) for key in "abcdef"]
    with harness.push_all(rows).rescaled(3) as subtasks:
        subtasks.take_output()
        assert subtasks.advance_processing_time(49).output() == []
        fired = subtasks.advance_processing_time(1).take_output()
        assert sorted(fired) == [("processing", 150, key) for key in "abcdef"]
        assert {subtask.clock() for subtask in subtasks} == {150}


def test_rows_without_keys_go_to_one_subtask_after_the_other() -> None:
    with OperatorHarness(Buffering()).rescaled(2) as subtasks:
        subtasks.push_all([1, 2, 3])
        assert [subtask.function.waiting for subtask in subtasks] == [[1, 3], [2]]


def test_a_failed_epoch_is_undone() -> None:
    with averages() as harness:
        harness.push(("a", 3)).end_epoch().push(("a", 3)).fail()
        harness.assert_state(SUM, {"a": (1, 3)})


# -- assertions --------------------------------------------------------------------------------------------------------


def test_a_failed_assertion_shows_both_sides_of_every_key_that_differs() -> None:
    with averages() as harness:
        harness.push_all([("a", 3), ("b", 1), ("c", 7)]).assert_state(SUM, {"a": (1, 3), "b": (1, 1), "c": (1, 7)})
        with pytest.raises(AssertionError) as failed:
            harness.assert_state(SUM, {"a": (1, 3), "b": (2, 2), "d": (1, 1)})
    assert str(failed.value) == (
        "State 'sum' of operator 'Flat Map' (uid operator-under-test), subtask 1/1 is not as expected:\n"
        "  'b'\n"
        "    expected: (2, 2)\n"
        "    found:    (1, 1)\n"
        "  'd'\n"
        "    expected: (1, 1)\n"
        "    found:    nothing\n"
        "  'c'\n"
        "    expected: nothing\n"
        "    found:    (1, 7)\n"
        "  1 of 4 are equal."
    )


def test_a_failed_assertion_of_one_key() -> None:
    with averages() as harness:
        harness.push(("a", 3)).assert_state(SUM, (1, 3), key="a").assert_state(SUM, None, key="b")
        with pytest.raises(AssertionError, match=r"subtask 1/1, key 'a', is not as expected:\n  expected: None\n"):
            harness.assert_state(SUM, None, key="a")
        with pytest.raises(ProgramError, match="takes a dict"):
            harness.assert_state(SUM, (1, 3))


def test_states_of_all_kinds_and_keys_that_have_none() -> None:
    with KeyedOperatorHarness(Everything(), first, Types.STRING()) as harness:
        harness.push_all([("a", "add", 1), ("b", "add", 2), ("b", "put", 3), ("c", "get", 0)])
        harness.assert_state(LIST, {"a": [1], "b": [2]}).assert_state(MAP, {"b": {"3": 3}})
        harness.push(("b", "clear", 0)).assert_state(LIST, {"a": [1]}).assert_state(MAP, {})


class Broken(MapFunction):
    def map(self, value: Any) -> Any:
        raise ValueError(value)


def test_an_error_in_one_subtask_drops_all_of_them() -> None:
    with pytest.raises(Exception, match="broken row"), OperatorHarness(Broken()).rescaled(2) as subtasks:
        subtasks.push("broken row")
    for subtask in subtasks:
        with pytest.raises(ProgramError, match="closed"):
            subtask.push(1)


class FailsToClose(MapFunction):
    def map(self, value: Any) -> Any:
        return value

    def close(self) -> None:
        raise OSError("cannot be closed")


def test_all_subtasks_are_closed_where_the_first_cannot_be() -> None:
    with pytest.raises(Exception, match="cannot be closed"), OperatorHarness.parallel(2, FailsToClose()) as subtasks:
        subtasks.push(1)
    for subtask in subtasks:
        with pytest.raises(ProgramError, match="closed"):
            subtask.push(1)
