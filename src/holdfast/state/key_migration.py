"""Keys of a stream that change over a restore: their type, or what they are.

A stored entry begins with its key, that of a state as that of a timer. So an operator's keys change by rewriting what
entries begin with. Where the hash of keys may change, they go to other key groups, and every subtask reads all entries
and keeps those that are its own.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from holdfast.errors import StateMigrationError
from holdfast.state.handles import KeyedSnapshot
from holdfast.state.keys import KeyCodec
from holdfast.state.versions import StepFailed, Steps, Versions, run_steps, why_failed
from holdfast.types.type_changes import keeps_hash, key_change
from holdfast.types.typeinfo import TypeInformation

#: From the name of a state and two values of it, the older key's first, to the value of the key that both became.
Merge = Callable[[str, Any, Any], Any]


def key_versions() -> Versions:
    return Versions("keys of a stream", "migrate_key_from({version}, function) behind the key_by")


@dataclass(frozen=True)
class KeyMigrations:
    """What a program says of its keys: their version, the steps to it, and what to do where two keys become one."""

    versions: Versions = field(default_factory=key_versions)
    merge: Merge | None = None


class KeyRewrite:
    """Makes keys of the program of the stored keys of a snapshot."""

    def __init__(self, operator: str, old: KeyCodec, new: KeyCodec, change: Callable[[Any], Any]) -> None:
        self.operator = operator
        self._old, self._new = old, new
        self._change = change

    def new_key(self, encoded: bytes) -> Any:
        """The new key of a stored one."""
        key = self._old.decode(encoded)
        try:
            return self._new.normalise(self._change(key))
        except Exception as error:
            where = f"The key {reprlib.repr(key)} of operator '{self.operator}'"
            raise StateMigrationError(f"{where}: {why_failed(error, 'migrate_key_from')}") from error

    def describe(self, encoded: bytes) -> str:
        """A stored key of the snapshot, for people."""
        return reprlib.repr(self._old.decode(encoded))

    def describe_new(self, encoded: bytes) -> str:
        return reprlib.repr(self._new.decode(encoded))


@dataclass(frozen=True)
class KeyPlan:
    """How the keys of one operator change. ``moves`` says whether they may go to other key groups, and ``merge`` what
    becomes of two that become one: None is an error.
    """

    rewrite: KeyRewrite
    moves: bool
    versions: tuple[int, int]
    merge: Merge | None = None


def key_plan(operator: str, codec: KeyCodec, migrations: KeyMigrations, stored: KeyedSnapshot) -> KeyPlan | None:
    """What a restore does with the keys of a snapshot, None where they stay; StateMigrationError where it cannot."""
    old, versions = stored.key_serializer, (stored.key_version, migrations.versions.current)
    steps = migrations.versions.steps_from(stored.key_version, f"The key of operator '{operator}'")
    if not steps and old == codec.snapshot():
        return None
    codec.require_readable(old, operator)
    old_type = TypeInformation.from_json(old["type"])
    old_codec = KeyCodec.for_type(old_type.bare())
    if steps:
        return KeyPlan(KeyRewrite(operator, old_codec, codec, _running(steps)), True, versions, migrations.merge)
    change = key_change(old_type, codec.type_info)
    if change is None or not keeps_hash(old_type, codec.type_info):
        raise StateMigrationError(
            f"The key type of operator '{operator}' was {old_type.describe()} when its state was stored and is "
            f"{codec.type_info.describe()} now. {_WHY_NOT[change is not None]} Declare the old type, give a function "
            f"that makes new keys of old ones (key_by(...).migrate_key_from({stored.key_version}, function)), or start "
            "the operator without this state (another uid)."
        )
    return KeyPlan(KeyRewrite(operator, old_codec, codec, change), False, versions)


_WHY_NOT = {
    True: "The hash of a key would change with it, and so would the subtask that has its state.",
    False: "Keys of the one are not keys of the other.",
}


def _running(steps: Steps) -> Callable[[Any], Any]:
    def change(key: Any) -> Any:
        found = run_steps(steps, key)
        if found is None:
            raise StepFailed(steps[-1][0], "it gave None, which is no key")
        return found

    return change
