"""Operator state: lists and broadcast maps of one (operator, subtask), on the heap, written whole at every checkpoint.

A restore registers what was stored under its name. It is decoded when the state is asked for. What nobody asks for is
kept as it came and written again, so that a program that leaves a state out for a while does not lose it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from holdfast.errors import StateDescriptorError, StateMigrationError
from holdfast.state.broadcast_state import BroadcastState
from holdfast.state.descriptors import ListStateDescriptor, MapStateDescriptor, StateDescriptor
from holdfast.state.handles import DistributionMode, ListStateSnapshot
from holdfast.state.operator_state_migration import migrated_elements
from holdfast.state.redistribution import redistribute
from holdfast.state.serializers import Serializer, type_errors_of


class PartitionableListState:
    """A list of operator state, kept as encoded elements. ``owner`` is how errors name it.

    Elements are checked against their type when they are added, and ``get`` gives new objects: an element that is
    changed in place is not changed in the state.
    """

    def __init__(self, owner: str, serializer: Serializer, elements: Iterable[bytes] = ()) -> None:
        self._owner = owner
        self._serializer = serializer
        self._elements = list(elements)

    def get(self) -> list[Any]:
        return self._serializer.decode_many(self._elements)

    def add(self, value: Any) -> None:
        self.add_all([value])

    def add_all(self, values: Iterable[Any]) -> None:
        """All values, or, when one is not of the type, none."""
        self._elements += self._encoded(values)

    def update(self, values: Iterable[Any]) -> None:
        """Replace all elements."""
        self._elements = self._encoded(values)

    def clear(self) -> None:
        self._elements = []

    def __iter__(self) -> Iterator[Any]:
        return iter(self.get())

    def encoded(self) -> tuple[bytes, ...]:
        return tuple(self._elements)

    def _encoded(self, values: Iterable[Any]) -> list[bytes]:
        added = list(values)
        with type_errors_of(self._owner):
            return self._serializer.encode_many(added)


@dataclass
class RegisteredState:
    """One name: what was restored under it, until a function asks for it; its descriptor and live state from then on.

    A name has several restored snapshots when its elements were written with different types.
    """

    mode: DistributionMode
    restored: list[ListStateSnapshot] = field(default_factory=list)
    #: A function of this attempt asked for it, perhaps in another process: what it holds is the function's business.
    claimed: bool = False
    descriptor: StateDescriptor | None = None
    state: PartitionableListState | BroadcastState | None = None

    def content(self, name: str) -> list[ListStateSnapshot]:
        """What it holds now."""
        if self.state is None or self.descriptor is None:
            return self.restored
        types = {role: serializer.snapshot() for role, serializer in self.descriptor.serializers().items()}
        version = self.descriptor.versions.current
        return [ListStateSnapshot(name, self.mode, types, self.state.encoded(), version)]


@dataclass
class RegisteredStates:
    """The states of a backend by name: what a restore fills, functions claim and a snapshot writes. Lists and broadcast
    maps have separate names, as in Flink.
    """

    lists: dict[str, RegisteredState] = field(default_factory=dict)
    maps: dict[str, RegisteredState] = field(default_factory=dict)

    @classmethod
    def of(cls, restored: Iterable[ListStateSnapshot]) -> RegisteredStates:
        states = cls()
        for snapshot in restored:
            states.add(snapshot)
        return states

    def add(self, snapshot: ListStateSnapshot, claimed: bool = False) -> None:
        names = self.maps if snapshot.mode is DistributionMode.BROADCAST else self.lists
        entry = names.setdefault(snapshot.name, RegisteredState(snapshot.mode))
        entry.restored.append(snapshot)
        entry.claimed |= claimed

    def items(self) -> list[tuple[str, RegisteredState]]:
        return [*self.lists.items(), *self.maps.items()]


class DefaultOperatorStateBackend:
    """The operator states of one (operator, subtask). ``where`` is how errors name it."""

    def __init__(
        self, where: str, states: RegisteredStates | None = None, subtask: int = 0, parallelism: int = 1
    ) -> None:
        self._where = where
        self._states = states or RegisteredStates()
        self._subtask = subtask
        self._parallelism = parallelism

    def get_list_state(self, descriptor: ListStateDescriptor) -> PartitionableListState:
        """A list whose elements are split over the subtasks when the parallelism changes."""
        return self._list(descriptor, DistributionMode.SPLIT_DISTRIBUTE)

    def get_union_list_state(self, descriptor: ListStateDescriptor) -> PartitionableListState:
        """A list of which every subtask gets all elements of all subtasks at a restore."""
        return self._list(descriptor, DistributionMode.UNION)

    def get_broadcast_state(self, descriptor: MapStateDescriptor) -> BroadcastState:
        """A map that is the same on every subtask, as long as all put the same into it."""
        self._check_kind(descriptor, MapStateDescriptor)
        name = descriptor.get_name()
        entry = self._states.maps.setdefault(name, RegisteredState(DistributionMode.BROADCAST))
        if entry.state is None:
            elements = self._restored(self._states.maps, entry, descriptor)
            serializers = descriptor.serializers()
            state = BroadcastState(self._owner(name), serializers["map_key"], serializers["value"], elements)
            self._claim(entry, descriptor, state)
        self._check_same(entry.descriptor, descriptor)
        assert isinstance(entry.state, BroadcastState)
        return entry.state

    def get_registered_state_names(self) -> set[str]:
        """The names of the lists, those included that were restored and not yet asked for."""
        return set(self._states.lists)

    def get_registered_broadcast_state_names(self) -> set[str]:
        return set(self._states.maps)

    def snapshot(self) -> tuple[ListStateSnapshot, ...]:
        """All states as they are now, in the order of their names."""
        written = [snapshot for name, entry in self._states.items() for snapshot in self._to_write(name, entry)]
        return tuple(sorted(written, key=lambda snapshot: (snapshot.name, snapshot.mode)))

    def pack(self) -> bytes:
        """All of it, for another process that goes on with this attempt."""
        return _packed.encode([(entry.claimed, entry.content(name)) for name, entry in self._states.items()])

    @staticmethod
    def unpack(packed: bytes) -> RegisteredStates:
        states = RegisteredStates()
        for claimed, snapshots in _unpacked.decode(packed):
            for snapshot in snapshots:
                states.add(snapshot, claimed)
        return states

    def _to_write(self, name: str, entry: RegisteredState) -> Sequence[ListStateSnapshot]:
        content = entry.content(name)
        if entry.claimed or entry.mode is not DistributionMode.UNION:
            return content
        # Every subtask holds the whole list, and nobody looks after it: each writes a share of its own, so that their
        # union is the list again and not the list as many times as there are subtasks.
        split = tuple(msgspec.structs.replace(part, mode=DistributionMode.SPLIT_DISTRIBUTE) for part in content)
        share = redistribute([split], self._parallelism)[self._subtask]
        # A share of nothing still says that there is such a list.
        mine = share or [msgspec.structs.replace(part, elements=()) for part in split[:1]]
        return [msgspec.structs.replace(part, mode=DistributionMode.UNION) for part in mine]

    def _list(self, descriptor: ListStateDescriptor, mode: DistributionMode) -> PartitionableListState:
        self._check_kind(descriptor, ListStateDescriptor)
        name = descriptor.get_name()
        entry = self._states.lists.setdefault(name, RegisteredState(mode))
        self._check_mode(name, entry.mode, mode)
        if entry.state is None:
            elements = self._restored(self._states.lists, entry, descriptor)
            serializer = descriptor.serializers()["value"]
            self._claim(entry, descriptor, PartitionableListState(self._owner(name), serializer, elements))
        self._check_same(entry.descriptor, descriptor)
        assert isinstance(entry.state, PartitionableListState)
        return entry.state

    def _owner(self, name: str) -> str:
        return f"{self._where}, operator state '{name}'"

    @staticmethod
    def _claim(
        entry: RegisteredState, descriptor: StateDescriptor, state: PartitionableListState | BroadcastState
    ) -> None:
        entry.descriptor, entry.state, entry.claimed = descriptor, state, True
        entry.restored = []

    def _restored(
        self, names: dict[str, RegisteredState], entry: RegisteredState, descriptor: StateDescriptor
    ) -> list[bytes]:
        """What was stored under the name, or under one that it had, as the descriptor's types read it."""
        stored = list(entry.restored)
        for name in descriptor.former_names:
            former = names.get(name)
            if former is None:
                continue
            self._check_former(descriptor, former, name, entry)
            stored += former.restored
            del names[name]
        return migrated_elements(self._where, stored, descriptor)

    def _check_former(
        self, descriptor: StateDescriptor, former: RegisteredState, name: str, entry: RegisteredState
    ) -> None:
        if former.state is not None:
            raise StateDescriptorError(
                f"{self._where} declares the {descriptor.describe()} as renamed from '{name}', which it uses as well. "
                "Leave one of them out."
            )
        self._check_mode(name, former.mode, entry.mode)
        if any(one.elements for one in entry.restored) and any(one.elements for one in former.restored):
            raise StateMigrationError(
                f"{self._where}: operator state '{descriptor.get_name()}' was restored, and so was '{name}', which it "
                "is said to be renamed from. They cannot become one: leave renamed_from out."
            )

    def _check_mode(self, name: str, was: DistributionMode, now: DistributionMode) -> None:
        if was != now:
            raise StateDescriptorError(
                f"{self._where}: incompatible state assignment modes: state '{name}' was registered with "
                f"[{was.value}] and is asked for with [{now.value}]. {_GETTERS[was]} gives the state as it was; use "
                f"another name for a new one."
            )

    def _check_same(self, registered: StateDescriptor | None, descriptor: StateDescriptor) -> None:
        if registered is not None and registered != descriptor:
            raise StateDescriptorError(
                f"{self._where} has two descriptors of one name: {registered.describe()} and "
                f"{descriptor.describe()}. Use one type, or another name."
            )

    def _check_kind(self, descriptor: Any, expected: type[StateDescriptor]) -> None:
        if not isinstance(descriptor, expected):
            raise StateDescriptorError(
                f"{self._where} asked for operator state with {descriptor!r}; expected a {expected.__name__}."
            )
        if descriptor.ttl_config is not None:
            raise StateDescriptorError(
                f"{self._where} asked for operator state with a time to live, which only keyed state can have: "
                f"{descriptor.describe()}. Remove enable_time_to_live."
            )


_GETTERS = {
    DistributionMode.SPLIT_DISTRIBUTE: "get_list_state",
    DistributionMode.UNION: "get_union_list_state",
    DistributionMode.BROADCAST: "get_broadcast_state",
}

_packed = msgspec.msgpack.Encoder()
_unpacked = msgspec.msgpack.Decoder(list[tuple[bool, list[ListStateSnapshot]]])
