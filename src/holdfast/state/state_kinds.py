"""From a descriptor to its state."""

from __future__ import annotations

from typing import Any

from holdfast.errors import ProgramError
from holdfast.state.cells import Cells, OwnedCells
from holdfast.state.combining_state import KeyedAggregatingState, KeyedReducingState
from holdfast.state.descriptors import (
    AggregatingStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
)
from holdfast.state.handles import StateMeta
from holdfast.state.keyed_state import KeyedState, StateAccess
from holdfast.state.keys import KeyCodec
from holdfast.state.list_state import KeyedListState
from holdfast.state.map_state import KeyedMapState
from holdfast.state.ttl_cells import ExpiringCells
from holdfast.state.ttl_states import (
    ExpiringAggregatingState,
    ExpiringListState,
    ExpiringMapState,
    ExpiringReducingState,
    ExpiringValueState,
)
from holdfast.state.ttl_time import TtlTime
from holdfast.state.value_state import KeyedValueState

#: By the kind of the descriptor: the state, and the one with a time to live. They are made from the same arguments.
_CLASSES: dict[str, tuple[Any, Any]] = {
    "value": (KeyedValueState, ExpiringValueState),
    "list": (KeyedListState, ExpiringListState),
    "map": (KeyedMapState, ExpiringMapState),
    "reducing": (KeyedReducingState, ExpiringReducingState),
    "aggregating": (KeyedAggregatingState, ExpiringAggregatingState),
}


def make_state(
    descriptor: StateDescriptor,
    access: StateAccess,
    meta: StateMeta,
    namespaces: KeyCodec | None,
    time: TtlTime,
    owned: bool = False,
) -> KeyedState:
    """``time`` is for a state with a time to live, ``owned`` for one without (see ``OwnedCells``)."""
    if descriptor.kind not in _CLASSES:
        raise ProgramError(f"{descriptor!r} is not a descriptor of keyed state.")
    plain, expiring = _CLASSES[descriptor.kind]
    values, ttl = descriptor.serializers()["value"], descriptor.ttl_config
    cells: Cells
    if ttl is not None:
        cells = ExpiringCells(values, ttl, time)
    else:
        cells = OwnedCells(values) if owned else Cells(values)
    arguments: list[Any] = [cells]
    if isinstance(descriptor, MapStateDescriptor):
        arguments.insert(0, KeyCodec.for_type(descriptor.key_type_info))
    elif isinstance(descriptor, ReducingStateDescriptor):
        arguments.append(descriptor.reduce)
    elif isinstance(descriptor, AggregatingStateDescriptor):
        arguments.append(descriptor.get_agg_function())
    state: KeyedState = (plain if ttl is None else expiring)(access, meta, namespaces, *arguments)
    return state
