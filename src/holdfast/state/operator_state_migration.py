"""Stored elements of operator state as a program's descriptor reads them: as they are, by their types, or by the
functions that the descriptor has for their version.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from holdfast.errors import StateMigrationError
from holdfast.state.descriptors import MapStateDescriptor, StateDescriptor
from holdfast.state.handles import ListStateSnapshot
from holdfast.state.serializers import (
    Compatibility,
    Serializer,
    compatibility,
    migration,
    old_values,
    serializer_from_snapshot,
)
from holdfast.state.versions import Steps, run_pair_steps, run_steps, why_failed
from holdfast.types.type_changes import loses_nothing


def migrated_elements(where: str, stored: Iterable[ListStateSnapshot], descriptor: StateDescriptor) -> list[bytes]:
    """All elements, for a broadcast map its keys and values in turn. StateMigrationError, naming the state, where they
    cannot be had.
    """
    found: list[bytes] = []
    for snapshot in stored:
        who = f"{where}: operator state '{snapshot.name}'"
        steps = descriptor.versions.steps_from(snapshot.version, who)
        change = _by_steps if steps else _by_types
        found += change(who, snapshot, descriptor, steps)
    return found


def _by_types(who: str, snapshot: ListStateSnapshot, descriptor: StateDescriptor, _: Steps) -> list[bytes]:
    serializers, elements = descriptor.serializers(), snapshot.elements
    if not isinstance(descriptor, MapStateDescriptor):
        return _converted(who, snapshot, "value", serializers["value"], elements)
    keys = _converted(who, snapshot, "map_key", serializers["map_key"], elements[0::2])
    values = _converted(who, snapshot, "value", serializers["value"], elements[1::2])
    return list(chain.from_iterable(zip(keys, values, strict=True)))


def _converted(
    who: str, snapshot: ListStateSnapshot, role: str, new: Serializer, data: Sequence[bytes]
) -> list[bytes]:
    stored = snapshot.serializers[role]
    old = serializer_from_snapshot(stored)
    keeps = role == "value" or loses_nothing(old.type_info, new.type_info)
    if compatibility(stored, new) is Compatibility.INCOMPATIBLE or not keeps:
        raise StateMigrationError(
            f"{who} was stored with type {old.type_info.describe()} and is declared with {new.type_info.describe()}, "
            f"which cannot read it. Declare the old type, give it a function that makes new elements of old ones "
            f"(descriptor.migrate_from({snapshot.version}, function)), or use another name."
        )
    return list(map(migration(old, new), data))


def _by_steps(who: str, snapshot: ListStateSnapshot, descriptor: StateDescriptor, steps: Steps) -> list[bytes]:
    is_map = isinstance(descriptor, MapStateDescriptor)
    migrate = _pairs(snapshot, descriptor, steps) if is_map else _elements(snapshot, descriptor, steps)
    found: list[bytes] = []
    size = 2 if is_map else 1
    for at in range(0, len(snapshot.elements), size):
        try:
            found += migrate(snapshot.elements[at : at + size])
        except Exception as error:
            place = f"{who} (version {snapshot.version}), {_element(snapshot, at, is_map)}"
            raise StateMigrationError(f"{place}: {why_failed(error)}") from error
    if is_map and len(set(found[0::2])) < len(found[0::2]):
        raise StateMigrationError(
            f"{who}: its migration gives two entries the same map key. Keep them apart, or drop one (return None)."
        )
    return found


#: From the encoded element, or key and value, to what takes their place; empty when they are dropped.
_Migrate = Callable[[Sequence[bytes]], Sequence[bytes]]


def _elements(snapshot: ListStateSnapshot, descriptor: StateDescriptor, steps: Steps) -> _Migrate:
    decode, encode = old_values(snapshot.serializers["value"]).decode, descriptor.serializers()["value"].encode

    def migrate(stored: Sequence[bytes]) -> Sequence[bytes]:
        value = run_steps(steps, decode(stored[0]))
        return () if value is None else (encode(value),)

    return migrate


def _pairs(snapshot: ListStateSnapshot, descriptor: StateDescriptor, steps: Steps) -> _Migrate:
    decode_key, decode = (old_values(snapshot.serializers[role]).decode for role in ("map_key", "value"))
    new = descriptor.serializers()
    encode_key, encode = new["map_key"].encode, new["value"].encode

    def migrate(stored: Sequence[bytes]) -> Sequence[bytes]:
        pair = run_pair_steps(steps, decode_key(stored[0]), decode(stored[1]))
        return () if pair is None else (encode_key(pair[0]), encode(pair[1]))

    return migrate


def _element(snapshot: ListStateSnapshot, at: int, is_map: bool) -> str:
    if not is_map:
        return f"element {at}"
    return f"map key {reprlib.repr(old_values(snapshot.serializers['map_key']).decode(snapshot.elements[at]))}"
