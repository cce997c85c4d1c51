"""Operator state: lists and broadcast maps of one (operator, subtask), on the heap, written whole at every checkpoint.

What was restored is decoded when a state is asked for under its name. A restored state that nobody asks for is kept as
it came and written again, so that a program that leaves a state out for a while does not lose it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from holdfast.errors import RestoreError, StateDescriptorError, StateMigrationError
from holdfast.state.broadcast_state import BroadcastState
from holdfast.state.descriptors import ListStateDescriptor, MapStateDescriptor, StateDescriptor
from holdfast.state.handles import DistributionMode, ListStateSnapshot
from holdfast.state.serializers import Compatibility, Serializer, compatibility, migration, serializer_from_snapshot


class OperatorListState:
    """A list of operator state, kept as encoded elements.

    Elements are checked against their type when they are added, and ``get`` gives new objects: an element that is
    changed in place is not changed in the state.
    """

    def __init__(self, serializer: Serializer, elements: Iterable[bytes] = ()) -> None:
        self._serializer = serializer
        self._elements = list(elements)

    def get(self) -> list[Any]:
        return self._serializer.decode_many(self._elements)

    def add(self, value: Any) -> None:
        self._elements.append(self._serializer.encode(value))

    def add_all(self, values: Iterable[Any]) -> None:
        """All values, or, when one is not of the type, none."""
        self._elements += self._serializer.encode_many(list(values))

    def update(self, values: Iterable[Any]) -> None:
        """Replace all elements."""
        self._elements = self._serializer.encode_many(list(values))

    def clear(self) -> None:
        self._elements = []

    def __iter__(self) -> Iterator[Any]:
        return iter(self.get())

    def encoded(self) -> tuple[bytes, ...]:
        return tuple(self._elements)


class DefaultOperatorStateBackend:
    """The operator states of one (operator, subtask).

    ``restored`` is what redistribution assigned to this subtask; a name may come more than once when its elements were
    written with different types. Lists and broadcast maps have separate names, as in Flink.
    """

    def __init__(self, operator_name: str, restored: Sequence[ListStateSnapshot] = ()) -> None:
        self._operator_name = operator_name
        self._lists: dict[str, tuple[DistributionMode, StateDescriptor, OperatorListState]] = {}
        self._maps: dict[str, tuple[StateDescriptor, BroadcastState]] = {}
        self._restored_lists: dict[str, list[ListStateSnapshot]] = {}
        self._restored_maps: dict[str, list[ListStateSnapshot]] = {}
        for snapshot in restored:
            kept = self._restored_maps if snapshot.mode == DistributionMode.BROADCAST else self._restored_lists
            kept.setdefault(snapshot.name, []).append(snapshot)

    def get_list_state(self, descriptor: ListStateDescriptor) -> OperatorListState:
        """A list whose elements are split over the subtasks when the parallelism changes."""
        return self._list(descriptor, DistributionMode.SPLIT_DISTRIBUTE)

    def get_union_list_state(self, descriptor: ListStateDescriptor) -> OperatorListState:
        """A list of which every subtask gets all elements of all subtasks at a restore."""
        return self._list(descriptor, DistributionMode.UNION)

    def get_broadcast_state(self, descriptor: MapStateDescriptor) -> BroadcastState:
        """A map that is the same on every subtask, as long as all put the same into it."""
        self._check_kind(descriptor, MapStateDescriptor)
        name = descriptor.get_name()
        if name in self._maps:
            registered, state = self._maps[name]
            self._check_same(registered, descriptor)
            return state
        serializers = descriptor.serializers()
        key, value = serializers["map_key"], serializers["value"]
        elements: list[bytes] = []
        for snapshot in self._restored_maps.get(name, ()):
            keys = self._migrated(name, snapshot.serializers["map_key"], key, snapshot.elements[0::2])
            values = self._migrated(name, snapshot.serializers["value"], value, snapshot.elements[1::2])
            elements.extend(part for pair in zip(keys, values, strict=True) for part in pair)
        state = BroadcastState(key, value, elements)
        self._restored_maps.pop(name, None)
        self._maps[name] = descriptor, state
        return state

    def get_registered_state_names(self) -> set[str]:
        """The names of the lists, those included that were restored and not yet asked for."""
        return {*self._lists, *self._restored_lists}

    def get_registered_broadcast_state_names(self) -> set[str]:
        return {*self._maps, *self._restored_maps}

    def snapshot(self) -> tuple[ListStateSnapshot, ...]:
        """All states as they are now, in the order of their names."""
        result = [snapshot for kept in self._restored_lists.values() for snapshot in kept]
        result += [snapshot for kept in self._restored_maps.values() for snapshot in kept]
        for name, (mode, descriptor, listed) in self._lists.items():
            result.append(ListStateSnapshot(name, mode, _snapshots(descriptor), listed.encoded()))
        for name, (descriptor, mapped) in self._maps.items():
            result.append(ListStateSnapshot(name, DistributionMode.BROADCAST, _snapshots(descriptor), mapped.encoded()))
        return tuple(sorted(result, key=lambda snapshot: (snapshot.name, snapshot.mode)))

    def _list(self, descriptor: ListStateDescriptor, mode: DistributionMode) -> OperatorListState:
        self._check_kind(descriptor, ListStateDescriptor)
        name = descriptor.get_name()
        if name in self._lists:
            registered_mode, registered, state = self._lists[name]
            self._check_mode(name, registered_mode, mode)
            self._check_same(registered, descriptor)
            return state
        serializer = descriptor.serializers()["value"]
        elements: list[bytes] = []
        for snapshot in self._restored_lists.get(name, ()):
            self._check_mode(name, snapshot.mode, mode)
            elements += self._migrated(name, snapshot.serializers["value"], serializer, snapshot.elements)
        state = OperatorListState(serializer, elements)
        self._restored_lists.pop(name, None)
        self._lists[name] = mode, descriptor, state
        return state

    def _migrated(self, name: str, stored: Mapping[str, Any], new: Serializer, data: Sequence[bytes]) -> list[bytes]:
        """The stored elements as the new serializer reads them."""
        old = serializer_from_snapshot(dict(stored))
        if compatibility(dict(stored), new) is Compatibility.INCOMPATIBLE:
            raise StateMigrationError(
                f"State '{name}' of operator '{self._operator_name}' was stored with type {old.type_info} and is "
                f"declared with {new.type_info}, which cannot read it. Declare the old type, or use another name."
            )
        return list(map(migration(old, new), data))

    def _check_mode(self, name: str, was: DistributionMode, now: DistributionMode) -> None:
        if was != now:
            raise StateDescriptorError(
                f"Incompatible state assignment modes: state '{name}' of operator '{self._operator_name}' was "
                f"registered with [{was.value}] and is asked for with [{now.value}]. {_GETTERS[was]} gives the state "
                f"as it was; use another name for a new one."
            )

    def _check_same(self, registered: StateDescriptor, descriptor: StateDescriptor) -> None:
        if registered != descriptor:
            raise StateDescriptorError(
                f"Operator '{self._operator_name}' has two descriptors of one name: {registered.describe()} and "
                f"{descriptor.describe()}. Use one type, or another name."
            )

    def _check_kind(self, descriptor: Any, expected: type[StateDescriptor]) -> None:
        if not isinstance(descriptor, expected):
            raise StateDescriptorError(
                f"Operator '{self._operator_name}' asked for operator state with {descriptor!r}; "
                f"expected a {expected.__name__}."
            )


_GETTERS = {
    DistributionMode.SPLIT_DISTRIBUTE: "get_list_state",
    DistributionMode.UNION: "get_union_list_state",
    DistributionMode.BROADCAST: "get_broadcast_state",
}


def _snapshots(descriptor: StateDescriptor) -> dict[str, Any]:
    return {role: serializer.snapshot() for role, serializer in descriptor.serializers().items()}


class _Stored(msgspec.Struct):
    version: int
    states: tuple[ListStateSnapshot, ...]


_STORED_VERSION = 1
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Stored)


def encode_operator_state(states: tuple[ListStateSnapshot, ...]) -> bytes:
    """The bytes of a snapshot, for SubtaskSnapshot.operator_state."""
    return _encoder.encode(_Stored(_STORED_VERSION, states))


def decode_operator_state(data: bytes) -> tuple[ListStateSnapshot, ...]:
    """RestoreError when the bytes are not those of a snapshot, or of a version that this one does not read."""
    try:
        version = msgspec.msgpack.decode(data, type=_Version).version
        if version == _STORED_VERSION:
            return _decoder.decode(data).states
    except msgspec.DecodeError as error:
        raise RestoreError(
            f"Stored operator state cannot be read: {error}. The file is not of operator state."
        ) from error
    raise RestoreError(
        f"Operator state was stored in version {version}; this version of Holdfast reads {_STORED_VERSION}. "
        f"Restore it with the version that wrote it."
    )


class _Version(msgspec.Struct):
    version: int
