"""Restored state meets the program that asks for it: same, migrated, or refused. The rules; rewriting.py applies them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from holdfast.errors import StateMigrationError
from holdfast.state.cells import pack_elements, unpack_elements
from holdfast.state.descriptors import StateDescriptor
from holdfast.state.handles import StateMeta
from holdfast.state.keys import KeyCodec
from holdfast.state.serializers import (
    Compatibility,
    Serializer,
    compatibility,
    migration,
    old_values,
    serializer_from_snapshot,
)
from holdfast.state.ttl_cells import restamped
from holdfast.state.versions import Steps, run_pair_steps, run_steps
from holdfast.types.type_changes import key_change
from holdfast.types.typeinfo import TypeInformation

#: From a stored value to the one that takes its place; None drops it.
Rewrite = Callable[[bytes], bytes | None]
#: From the stored map key and value of a map's entry to those that take their place; None drops it.
EntryRewrite = Callable[[bytes, bytes], tuple[bytes, bytes] | None]


@dataclass(frozen=True)
class StateRewrite:
    """How stored entries of a state become those that the program declares: by their values alone, or, where map keys
    change, as ``entry`` says.
    """

    value: Rewrite | None = None
    entry: EntryRewrite | None = None


def rewrite_for(
    operator: str, known: StateMeta, wanted: StateMeta, descriptor: StateDescriptor | None, now: int
) -> StateRewrite | None:
    """How stored entries of ``known`` become those of ``wanted``; None when they are good as they are. Timers have no
    descriptor.

    Values that get a time to live count as last accessed ``now``; those that lose it stay, the expired ones too.
    StateMigrationError, naming the operator, the state and both types or versions, where they cannot.
    """
    if known.kind != wanted.kind:
        raise _refused(operator, known, wanted, "value", "a state cannot change its kind")
    if known.serializers.get("namespace") != wanted.serializers.get("namespace"):
        raise _refused(operator, known, wanted, "namespace", "namespaces inside state cannot change their type")
    if descriptor is None:
        return None
    steps = descriptor.versions.steps_from(known.version, f"State '{known.name}' of operator '{operator}'")
    if not steps:
        return _by_types(operator, known, wanted, descriptor, now)
    values = descriptor.serializers()["value"]
    if known.kind == "map":
        return StateRewrite(entry=_map_by_steps(steps, known, wanted, values, now))
    change = _value_by_steps(steps, old_values(known.serializers["value"]), values)
    return StateRewrite(value=_of_kind(known.kind, change, known.ttl, wanted.ttl, now))


def map_key_change(old: dict[str, Any], new: KeyCodec) -> Callable[[bytes], bytes] | None:
    """How stored map keys become those of ``new``; None where the types do not allow it."""
    old_type = TypeInformation.from_json(old["type"]).bare()
    change = key_change(TypeInformation.from_json(old["type"]), new.type_info)
    if change is None:
        return None
    decode, encode = KeyCodec.for_type(old_type).decode, new.encode
    return lambda data: encode(change(decode(data)))


def stamping(kind: str, now: int) -> Callable[[bytes], bytes]:
    """Gives stored values of a state without a time to live the form of those that have one."""
    rewrite = _of_kind(kind, lambda data: data, had_ttl=False, has_ttl=True, now=now)

    def stamp(data: bytes) -> bytes:
        stamped = rewrite(data)
        assert stamped is not None, "nothing is dropped"
        return stamped

    return stamp


def _by_types(
    operator: str, known: StateMeta, wanted: StateMeta, descriptor: StateDescriptor, now: int
) -> StateRewrite | None:
    """What the types themselves allow, without a function of the program."""
    values = descriptor.serializers()["value"]
    found = compatibility(known.serializers["value"], values)
    if found is Compatibility.INCOMPATIBLE:
        raise _refused(operator, known, wanted, "value", "the new type cannot read what the old one wrote")
    same_keys = known.serializers.get("map_key") == wanted.serializers.get("map_key")
    if same_keys and found is not Compatibility.AFTER_MIGRATION and known.ttl == wanted.ttl:
        return None
    change = migration(serializer_from_snapshot(known.serializers["value"]), values)
    rewrite = _of_kind(known.kind, change, known.ttl, wanted.ttl, now)
    if same_keys:
        return StateRewrite(value=rewrite)
    rekey = map_key_change(known.serializers["map_key"], _map_keys(wanted))
    if rekey is None:
        raise _refused(operator, known, wanted, "map_key", "the new type cannot read the map keys of the old one")
    return StateRewrite(entry=_pair(rekey, rewrite))


def _pair(rekey: Callable[[bytes], bytes], rewrite: Rewrite) -> EntryRewrite:
    def entry(map_key: bytes, data: bytes) -> tuple[bytes, bytes] | None:
        found = rewrite(data)
        return None if found is None else (rekey(map_key), found)

    return entry


def _value_by_steps(steps: Steps, old: Serializer, new: Serializer) -> Rewrite:
    decode, encode = old.decode, new.encode

    def change(data: bytes) -> bytes | None:
        value = run_steps(steps, decode(data))
        return None if value is None else encode(value)

    return change


def _map_by_steps(steps: Steps, known: StateMeta, wanted: StateMeta, values: Serializer, now: int) -> EntryRewrite:
    old_type = TypeInformation.from_json(known.serializers["map_key"]["type"]).bare()
    decode_key, encode_key = KeyCodec.for_type(old_type).decode, _map_keys(wanted).encode
    decode, encode = old_values(known.serializers["value"]).decode, values.encode

    def entry(map_key: bytes, data: bytes) -> tuple[bytes, bytes] | None:
        new_key = b""

        def change(stored: bytes) -> bytes | None:
            nonlocal new_key
            pair = run_pair_steps(steps, decode_key(map_key), decode(stored) if stored else None)
            if pair is None:
                return None
            new_key = encode_key(pair[0])
            return b"" if pair[1] is None else encode(pair[1])

        found = restamped(change, known.ttl, wanted.ttl, now)(data)
        return None if found is None else (new_key, found)

    return entry


def _map_keys(meta: StateMeta) -> KeyCodec:
    return KeyCodec.for_type(TypeInformation.from_json(meta.serializers["map_key"]["type"]))


def _of_kind(kind: str, change: Rewrite, had_ttl: bool, has_ttl: bool, now: int) -> Rewrite:
    if kind == "list":
        element = restamped(change, had_ttl, has_ttl, now)

        def chunk(data: bytes) -> bytes | None:
            elements = [found for one in unpack_elements(data) if (found := element(one)) is not None]
            return pack_elements(elements) if elements else None

        return restamped(chunk, had_ttl, has_ttl, now)
    if kind == "map":
        # Empty bytes are a None, of any type.
        return restamped(lambda data: change(data) if data else data, had_ttl, has_ttl, now)
    return restamped(change, had_ttl, has_ttl, now)


def _refused(operator: str, known: StateMeta, wanted: StateMeta, role: str, why: str) -> StateMigrationError:
    return StateMigrationError(
        f"State '{known.name}' of operator '{operator}' was stored as {known.kind} state with {role} type "
        f"{_type_of(known.serializers.get(role))}; the program declares {wanted.kind} state with {role} type "
        f"{_type_of(wanted.serializers.get(role))}: {why}. Declare the old type, give the state a function that makes "
        f"new values of old ones (descriptor.migrate_from({known.version}, function)), or give it a new name."
    )


def _type_of(snapshot: dict[str, Any] | None) -> str:
    return "none" if snapshot is None else TypeInformation.from_json(snapshot["type"]).describe()
