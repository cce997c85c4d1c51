"""The states of one operator by name: their ids in stored keys, their kinds and their serializers' snapshots.

The registry of a subtask is an entry of its local store, so whoever opens the store knows what is in it. A state
that was restored and is not asked for stays registered: its entries stay in the store and in every snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from holdfast.errors import RestoreError, StateError
from holdfast.state.handles import KeyedSnapshot, StateMeta
from holdfast.state.layout import FIRST_RESERVED_ID

TIMERS = "timers"


class _Record(msgspec.Struct, array_like=True, frozen=True):
    version: int
    key_serializer: dict[str, Any]
    key_version: int
    states: tuple[StateMeta, ...]


_VERSION = 1
_decoder = msgspec.msgpack.Decoder(_Record)


class StateRegistry:
    """Changes with registrations; ``encode`` gives what the store keeps.

    A name may have several forms: where only some subtasks have asked for a state since its type or version changed,
    a restore that brings them together finds it in both. Whoever asks for the name makes one of them.
    """

    def __init__(
        self, key_serializer: dict[str, Any], key_version: int = 0, states: Iterable[StateMeta] = ()
    ) -> None:
        self.key_serializer = key_serializer
        self.key_version = key_version
        self._states = {meta.state_id: meta for meta in states}

    @classmethod
    def decode(cls, data: bytes) -> StateRegistry:
        record = _decoder.decode(data)
        if record.version != _VERSION:
            raise StateError(f"The store's registry of states has format {record.version}, expected {_VERSION}.")
        return cls(record.key_serializer, record.key_version, record.states)

    def encode(self) -> bytes:
        return msgspec.msgpack.encode(_Record(_VERSION, self.key_serializer, self.key_version, self.states()))

    def states(self) -> tuple[StateMeta, ...]:
        """All states, in the order of their ids."""
        return tuple(sorted(self._states.values(), key=lambda meta: meta.state_id))

    def forms(self, name: str) -> list[StateMeta]:
        """How the state of a name is stored."""
        return [meta for meta in self.states() if meta.name == name]

    def of_id(self, state_id: int) -> StateMeta:
        return self._states[state_id]

    def put(self, meta: StateMeta) -> None:
        self._states[meta.state_id] = meta

    def remove(self, meta: StateMeta) -> None:
        del self._states[meta.state_id]

    def next_id(self) -> int:
        """An id that no state has had."""
        found = max(self._states, default=-1) + 1
        if found >= FIRST_RESERVED_ID:
            raise StateError(f"An operator cannot have more than {FIRST_RESERVED_ID} states.")
        return found


def merge(snapshots: Iterable[KeyedSnapshot]) -> tuple[StateRegistry, list[dict[int, int]]]:
    """One registry for snapshots of several subtasks, and for each of them its ids that change.

    Subtasks may have registered their states in different orders; the first one's ids win. A state that has a time to
    live on some of them has it; one that they store in different forms is there in each of them.
    """
    registry: StateRegistry | None = None
    changes: list[dict[int, int]] = []
    for snapshot in snapshots:
        if registry is None:
            registry = StateRegistry(snapshot.key_serializer, snapshot.key_version)
        elif (registry.key_serializer, registry.key_version) != (snapshot.key_serializer, snapshot.key_version):
            raise RestoreError(
                f"The snapshots of two subtasks of one operator disagree on the type of its keys: "
                f"{registry.key_serializer} (version {registry.key_version}) and {snapshot.key_serializer} (version "
                f"{snapshot.key_version})."
            )
        changes.append({})
        for meta in snapshot.states:
            known = _agreed(registry, meta)
            if known.state_id != meta.state_id:
                changes[-1][meta.state_id] = known.state_id
    return registry or StateRegistry({}), changes


def _agreed(registry: StateRegistry, meta: StateMeta) -> StateMeta:
    """The registered state of ``meta``'s name and form, registered now if it is new."""
    known = next((one for one in registry.forms(meta.name) if _form(one) == _form(meta)), None)
    if known is None:
        taken = {one.state_id for one in registry.states()}
        known = msgspec.structs.replace(meta, state_id=registry.next_id()) if meta.state_id in taken else meta
        registry.put(known)
    elif meta.ttl and not known.ttl:
        # One subtask has asked for the state since its time to live was switched on or off, and the other has not.
        known = msgspec.structs.replace(known, ttl=True)
        registry.put(known)
    return known


def _form(meta: StateMeta) -> tuple[str, int, dict[str, Any]]:
    return meta.kind, meta.version, meta.serializers
