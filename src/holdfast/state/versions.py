"""Versions of what is stored, and the functions that take it from one to the next.

A program gives its states, and the keys of its streams, a version. It is stored with them. A restore that finds an
older one applies the functions of the versions in between, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.errors import ProgramError, StateMigrationError

#: Functions by the version that they begin with, in order.
Steps = list[tuple[int, Callable[..., Any]]]


class StepFailed(Exception):
    """The function from ``version`` raised, or gave something that it must not give. Its cause says what."""

    def __init__(self, version: int, why: str) -> None:
        super().__init__(why)
        self.version = version


def why_failed(error: Exception, call: str = "migrate_from") -> str:
    """How the error of a restore tells that a migration failed. ``call`` declares its steps."""
    what = f"the function of {call}({error.version}, ...)" if isinstance(error, StepFailed) else "its migration"
    return (
        f"{what} failed: {str(error).rstrip('.')}. Nothing is lost: the snapshot that was to be restored is as it was. "
        "Correct the function, and start from it again."
    )


class Versions:
    """The version of one state, or of the keys of one stream, and the steps to it. ``owner`` is how errors name it.

    The version is the one that was set, else the one that the last step leads to, else 0.
    """

    def __init__(self, owner: str, add: str) -> None:
        """``add`` is the call that declares a step."""
        self._owner = owner
        self._add = add
        self._set: int | None = None
        self._steps: dict[int, Callable[..., Any]] = {}

    @property
    def current(self) -> int:
        return self._set if self._set is not None else max(self._steps, default=-1) + 1

    def copy(self) -> Versions:
        copied = Versions(self._owner, self._add)
        copied._set, copied._steps = self._set, dict(self._steps)
        return copied

    def set_version(self, version: int) -> None:
        _check_version(self._owner, version)
        if self._steps and version <= max(self._steps):
            raise ProgramError(
                f"The {self._owner} has the version {version}, and a migration from version {max(self._steps)} on. "
                "Migrations lead to the present version: set a higher one, or none."
            )
        self._set = version

    def add_step(self, version: int, function: Callable[..., Any]) -> None:
        _check_version(self._owner, version)
        if not callable(function):
            raise ProgramError(
                f"The migration of the {self._owner} from version {version} is {function!r}, which cannot be called; "
                "expected a function."
            )
        if version in self._steps:
            raise ProgramError(f"The {self._owner} has two migrations from version {version}. Give one of them.")
        if self._set is not None and version >= self._set:
            raise ProgramError(
                f"The {self._owner} has the version {self._set}, and a migration from version {version} on. "
                "Migrations lead to the present version: set a higher one, or none."
            )
        self._steps[version] = function

    def steps_from(self, stored: int, who: str) -> Steps:
        """The steps from a stored version to the present one; StateMigrationError where there is no way. ``who`` names
        what was stored, and its operator.
        """
        if stored > self.current:
            raise StateMigrationError(
                f"{who} was stored by a program in which it has version {stored}, and has version {self.current} here. "
                f"State does not go back: run the program that wrote it, or one with a version of {stored} or more."
            )
        missing = [version for version in range(stored, self.current) if version not in self._steps]
        if missing:
            raise StateMigrationError(
                f"{who} was stored in version {stored} and has version {self.current} here, and nothing leads from "
                f"version {missing[0]} to {missing[0] + 1}. Add {self._add.format(version=missing[0])}."
            )
        return [(version, self._steps[version]) for version in range(stored, self.current)]


def _check_version(owner: str, version: Any) -> None:
    if not isinstance(version, int) or isinstance(version, bool) or version < 0:
        raise ProgramError(f"The {owner} was given the version {version!r}; expected a whole number from 0 on.")


def run_steps(steps: Steps, value: Any) -> Any:
    """The value as the present version has it; None when a step dropped it."""
    for version, function in steps:
        try:
            value = function(value)
        except Exception as error:
            raise StepFailed(version, f"{type(error).__name__}: {error}") from error
        if value is None:
            return None
    return value


def run_pair_steps(steps: Steps, key: Any, value: Any) -> tuple[Any, Any] | None:
    """Run the steps of an entry of a map, which take and give key and value."""
    for version, function in steps:
        try:
            pair = function(key, value)
        except Exception as error:
            raise StepFailed(version, f"{type(error).__name__}: {error}") from error
        if pair is None:
            return None
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise StepFailed(version, f"it gave {pair!r}; expected a pair of a map key and a value, or None")
        key, value = pair
    return key, value
