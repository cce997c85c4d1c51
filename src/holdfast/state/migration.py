"""Restored state meets the program that asks for it: same, migrated, or refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from holdfast.errors import StateMigrationError
from holdfast.state.cells import pack_elements, unpack_elements
from holdfast.state.handles import StateMeta
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.layout import group_bytes, id_bytes, prefix_end
from holdfast.state.serializers import Compatibility, Serializer, compatibility, migration, serializer_from_snapshot
from holdfast.state.store import LocalStore
from holdfast.state.ttl_cells import restamped
from holdfast.types.typeinfo import TypeInformation

_BATCH = 1024

Rewrite = Callable[[bytes], bytes]


def rewrite_for(
    operator: str, known: StateMeta, wanted: StateMeta, values: Serializer | None, now: int
) -> Rewrite | None:
    """How stored values of ``known`` become those of ``wanted``; None when they are good as they are.

    Values that get a time to live count as last accessed ``now``; those that lose it stay, the expired ones too.
    StateMigrationError, naming the operator, the state and both types, where they cannot.
    """
    for role in sorted({*known.serializers, *wanted.serializers} - {"value"}):
        if known.serializers.get(role) != wanted.serializers.get(role):
            raise _refused(operator, known, wanted, role, "keys and namespaces inside state cannot change their type")
    if known.kind != wanted.kind:
        raise _refused(operator, known, wanted, "value", "a state cannot change its kind")
    if values is None:
        return None
    found = compatibility(known.serializers["value"], values)
    if found is Compatibility.INCOMPATIBLE:
        raise _refused(operator, known, wanted, "value", "the new type cannot read what the old one wrote")
    if found is not Compatibility.AFTER_MIGRATION and known.ttl == wanted.ttl:
        return None
    change = migration(serializer_from_snapshot(known.serializers["value"]), values)
    return _of_kind(known.kind, change, known.ttl, wanted.ttl, now)


def stamping(kind: str, now: int) -> Rewrite:
    """Gives stored values of a state without a time to live the form of those that have one."""
    return _of_kind(kind, lambda data: data, had_ttl=False, has_ttl=True, now=now)


def rewrite_entries(store: LocalStore, key_groups: KeyGroupRange, state_id: int, rewrite: Rewrite) -> None:
    """Rewrite all values of a state, in the running transaction."""
    for group in key_groups:
        prefix = group_bytes(group) + id_bytes(state_id)
        entries: Iterator[tuple[bytes, bytes]] = store.scan(prefix, prefix_end(prefix))
        while batch := list(islice(entries, _BATCH)):
            store.write([(key, rewrite(value)) for key, value in batch])


def _of_kind(kind: str, change: Rewrite, had_ttl: bool, has_ttl: bool, now: int) -> Rewrite:
    if kind == "list":
        element = restamped(change, had_ttl, has_ttl, now)
        return restamped(
            lambda data: pack_elements([element(one) for one in unpack_elements(data)]), had_ttl, has_ttl, now
        )
    if kind == "map":
        # Empty bytes are a None, of any type.
        return restamped(lambda data: change(data) if data else data, had_ttl, has_ttl, now)
    return restamped(change, had_ttl, has_ttl, now)


def _refused(operator: str, known: StateMeta, wanted: StateMeta, role: str, why: str) -> StateMigrationError:
    return StateMigrationError(
        f"State '{known.name}' of operator '{operator}' was stored as {known.kind} state with {role} type "
        f"{_type_of(known.serializers.get(role))}; the program declares {wanted.kind} state with {role} type "
        f"{_type_of(wanted.serializers.get(role))}: {why}. Declare the old type, or give the state a new name."
    )


def _type_of(snapshot: dict[str, Any] | None) -> str:
    return "none" if snapshot is None else TypeInformation.from_json(snapshot["type"]).describe()
