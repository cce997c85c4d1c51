"""States of a snapshot that are pickled, found by their stored types: nothing of them is decoded.

Values and operator state are pickled where the program left their type open. Keys, namespaces and the map keys of keyed
state never are: without a declared type they have forms of their own (see key_undeclared.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from holdfast.errors import CorruptFileError
from holdfast.state.handles import CheckpointMetadata, DistributionMode, OperatorRecord, StateMeta
from holdfast.state.operator_state_file import Types, registered_states
from holdfast.state.snapshot_io import SnapshotReader
from holdfast.types.typeinfo import TypeInformation

_KINDS = {
    DistributionMode.SPLIT_DISTRIBUTE: "operator list",
    DistributionMode.UNION: "operator union list",
    DistributionMode.BROADCAST: "broadcast map",
}
#: What a program declares the type of a kind of state with.
_DECLARED_WITH = {
    "value state": "its ValueStateDescriptor, or state_type of map_with_state()",
    "list state": "its ListStateDescriptor",
    "map state": "its MapStateDescriptor",
    "reducing state": "its ReducingStateDescriptor",
    "aggregating state": "its AggregatingStateDescriptor",
    _KINDS[DistributionMode.SPLIT_DISTRIBUTE]: "its ListStateDescriptor",
    _KINDS[DistributionMode.UNION]: "its ListStateDescriptor",
    _KINDS[DistributionMode.BROADCAST]: "its MapStateDescriptor",
}
#: States that Holdfast itself registers for operators of a program, by their names.
_DECLARED_BY_NAME = {
    "_positions": "position_type() of the source",
    "_default_": "checkpointed_type of the function",
    "_reduce": "output_type of the function before it",
    "window-contents": "output_type of the function before the window, or accumulator_type of aggregate()",
}


@dataclass(frozen=True)
class PickledState:
    """One state, or the transactions, of an operator, of which something is pickled."""

    operator: str
    uid: str | None
    name: str
    kind: str
    #: Of its values, or of the keys and the values of a map.
    types: tuple[str, ...] = ()

    def describe(self) -> str:
        """Whose it is, and what of it is pickled."""
        uid = "" if self.uid is None else f" (uid {self.uid})"
        types = " and ".join(self.types)
        return f"operator '{self.operator}'{uid}: {self.kind} '{self.name}'{f' of {types}' if types else ''}"

    def advice(self) -> str:
        """What declares its type."""
        declared = _DECLARED_BY_NAME.get(self.name) or _DECLARED_WITH.get(self.kind, "the type of the rows")
        return f"{self.describe()} is pickled. To declare its type: {declared}."


@dataclass(frozen=True)
class StateOwner:
    """An operator, as messages name it."""

    name: str
    uid: str | None

    def pickled_keyed(self, metas: Iterable[StateMeta]) -> Iterator[PickledState]:
        """The keyed states that are pickled."""
        for meta in metas:
            types = _pickled_types({role: one for role, one in meta.serializers.items() if role == "value"})
            if types:
                yield PickledState(self.name, self.uid, meta.name, f"{meta.kind} state", types)

    def pickled_lists(self, states: Iterable[tuple[str, DistributionMode, Types]]) -> Iterator[PickledState]:
        """The operator states that are pickled."""
        for name, mode, serializers in states:
            types = _pickled_types(serializers)
            if types:
                yield PickledState(self.name, self.uid, name, _KINDS[mode], types)


def pickled_states(record: OperatorRecord, reader: SnapshotReader) -> list[PickledState]:
    """The pickled states of an operator, each once, whatever number of its subtasks has it."""
    owner, found = StateOwner(record.name, record.uid), set[PickledState]()
    for snapshot in record.subtasks:
        found.update(owner.pickled_keyed(snapshot.keyed.states if snapshot.keyed is not None else ()))
        found.update(owner.pickled_lists(registered_states(snapshot, reader)))
    return sorted(found, key=PickledState.describe)


def named_states(metadata: CheckpointMetadata, reader: SnapshotReader) -> list[PickledState]:
    """The pickled states of a whole snapshot that this job wrote."""
    found: list[PickledState] = []
    for record in metadata.operators:
        # What Spark reads has a position that is no list of states.
        with suppress(CorruptFileError):
            found += pickled_states(record, reader)
    return found


def _pickled_types(serializers: Mapping[str, Any]) -> tuple[str, ...]:
    """Types of the serializers that pickle, in whole or in part."""
    types = [TypeInformation.from_json(one["type"]) for one in serializers.values()]
    return tuple(type_info.describe() for type_info in types if type_info.pickled)
