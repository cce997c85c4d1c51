"""Versions of state: which functions lead from one to another."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.datastream.state import ListStateDescriptor, ValueStateDescriptor
from holdfast.errors import ProgramError, StateMigrationError
from holdfast.state.versions import StepFailed, Versions, run_pair_steps, run_steps


def versions() -> Versions:
    return Versions("state 'x'", "migrate_from({version}, function)")


@given(st.sets(st.integers(0, 12)), st.integers(0, 13))
def test_the_way_from_a_stored_version_is_complete_or_refused(steps: set[int], stored: int) -> None:
    known = versions()
    for step in steps:
        known.add_step(step, lambda value, step=step: [*value, step])
    assert known.current == max(steps, default=-1) + 1
    wanted = list(range(stored, known.current))
    if stored <= known.current and set(wanted) <= steps:
        found = known.steps_from(stored, "State 'x'")
        assert (run_steps(found, []) if found else []) == wanted
    else:
        with pytest.raises(StateMigrationError, match="State 'x'"):
            known.steps_from(stored, "State 'x'")


def test_a_missing_step_says_what_to_add() -> None:
    known = versions()
    known.add_step(0, str)
    known.add_step(2, str)
    with pytest.raises(StateMigrationError, match=r"from version 1 to 2\. Add migrate_from\(1, function\)"):
        known.steps_from(0, "it")
    assert [version for version, _ in known.steps_from(2, "it")] == [2]


@pytest.mark.parametrize("version", [-1, True, "1", 1.0, None])
def test_a_version_is_a_whole_number(version: Any) -> None:
    with pytest.raises(ProgramError, match="whole number"):
        versions().set_version(version)
    with pytest.raises(ProgramError, match="whole number"):
        versions().add_step(version, str)


def test_steps_and_version_agree() -> None:
    with pytest.raises(ProgramError, match="two migrations from version 0"):
        ValueStateDescriptor("x").migrate_from(0, str).migrate_from(0, int)
    with pytest.raises(ProgramError, match="lead to the present version"):
        ValueStateDescriptor("x").version(1).migrate_from(1, str)
    with pytest.raises(ProgramError, match="lead to the present version"):
        ValueStateDescriptor("x").migrate_from(1, str).version(1)
    with pytest.raises(ProgramError, match="cannot be called"):
        ValueStateDescriptor("x").migrate_from(0, 7)  # type: ignore[arg-type]  # what is refused
    assert ValueStateDescriptor("x").version(5).migrate_from(0, str).versions.current == 5


def test_descriptors_differ_in_their_version() -> None:
    assert ListStateDescriptor("x", "int") != ListStateDescriptor("x", "int").version(1)
    assert ListStateDescriptor("x", "int").migrate_from(0, str) == ListStateDescriptor("x", "int").version(1)


@pytest.mark.parametrize("name", ["", "x", 3])
def test_a_former_name_is_another_name(name: Any) -> None:
    with pytest.raises(ProgramError, match="expected another name"):
        ValueStateDescriptor("x").renamed_from(name)


def test_none_ends_the_way() -> None:
    assert run_steps([(0, lambda value: None), (1, str)], 1) is None
    assert run_pair_steps([(0, lambda key, value: None), (1, lambda key, value: (key, value))], 1, 2) is None


def test_an_entry_of_a_map_stays_a_pair() -> None:
    with pytest.raises(StepFailed, match="expected a pair") as caught:
        run_pair_steps([(0, lambda key, value: (key, value)), (1, lambda key, value: value)], 1, 2)
    assert caught.value.version == 1
