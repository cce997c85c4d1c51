"""How values and keys with fields follow a change of their type: field by field, by name where fields have names.

Fields that are new have their default. Keys of the old type are rows here, of whatever class they were.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from holdfast.types.type_changes import Change, KeyChange, change_between, keeps_hash, loses_nothing, optional

if TYPE_CHECKING:
    from holdfast.types.contract import TypeInformation
    from holdfast.types.fields import FieldsTypeInfo

#: In the place of a position: the old type does not have the field.
_ABSENT = -1


def change_positions(old: FieldsTypeInfo, new: FieldsTypeInfo) -> Change | None:
    if len(old.field_types) != len(new.field_types):
        return None
    changes = [change_between(*pair) for pair in zip(old.field_types, new.field_types, strict=True)]
    possible = [change for change in changes if change is not None]
    if len(possible) < len(changes):
        return None
    return lambda stored: [optional(change, part) for change, part in zip(possible, stored, strict=True)]


def change_named(old: FieldsTypeInfo, new: FieldsTypeInfo) -> Change | None:
    sources = _sources(old, new)
    if all(source is None for source in sources):
        return None
    reads: list[tuple[int, Change]] = []
    for name, field, source in zip(new.field_names, new.field_types, sources, strict=True):
        if source is None:
            default = new.default_of(name)
            if default is None:
                return None
            reads.append((_ABSENT, _default_stored(field, default)))
        else:
            change = change_between(old.field_types[source], field)
            if change is None:
                return None
            reads.append((source, change))

    def change_all(stored: Any) -> Any:
        return [
            change(None) if position == _ABSENT else optional(change, stored[position]) for position, change in reads
        ]

    return change_all


def named_lose_nothing(old: FieldsTypeInfo, new: FieldsTypeInfo) -> bool:
    sources = _sources(old, new)
    kept = {source for source in sources if source is not None}
    return len(kept) == len(old.field_names) and all(
        loses_nothing(old.field_types[source], field)
        for source, field in zip(sources, new.field_types, strict=True)
        if source is not None
    )


def named_keep_hash(old: FieldsTypeInfo, new: FieldsTypeInfo) -> bool:
    """Fields are hashed in their order, and those that are None are passed over."""
    sources = _sources(old, new)
    kept = [source for source in sources if source is not None]
    defaults = [new.default_of(name) for name, source in zip(new.field_names, sources, strict=True) if source is None]
    pairs = ((old.field_types[s], field) for s, field in zip(sources, new.field_types, strict=True) if s is not None)
    return (
        kept == sorted(kept)
        and all(default is not None and default() is None for default in defaults)
        and all(keeps_hash(*pair) for pair in pairs)
    )


def change_key_positions(old: FieldsTypeInfo, new: FieldsTypeInfo) -> KeyChange:
    changes = [field.key_change_from(before) for before, field in zip(old.field_types, new.field_types, strict=True)]
    return lambda key: tuple([optional(change, part) for change, part in zip(changes, key, strict=True)])


def change_named_key(old: FieldsTypeInfo, new: FieldsTypeInfo) -> KeyChange:
    reads: list[KeyChange] = []
    for name, field, source in zip(new.field_names, new.field_types, _sources(old, new), strict=True):
        if source is None:
            default = new.default_of(name)
            assert default is not None, "the types are compatible"
            reads.append(_defaulting(default))
        else:
            reads.append(_reading(source, field.key_change_from(old.field_types[source])))
    return lambda key: tuple([read(key) for read in reads])


def _sources(old: FieldsTypeInfo, new: FieldsTypeInfo) -> list[int | None]:
    """For each field of ``new`` the position of its value in ``old``: under its name, or under one of its aliases."""
    positions = {name: position for position, name in enumerate(old.field_names)}
    return [
        next((positions[known] for known in (name, *new.aliases_of(name)) if known in positions), None)
        for name in new.field_names
    ]


def _default_stored(field: TypeInformation, default: Callable[[], Any]) -> Change:
    pack = field.stored_form().pack
    return lambda _: None if (value := default()) is None else pack(value)


def _defaulting(default: Callable[[], Any]) -> KeyChange:
    return lambda key: default()


def _reading(position: int, change: KeyChange) -> KeyChange:
    return lambda key: optional(change, key[position])
