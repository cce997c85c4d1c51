"""What may happen to a type between two runs of a program, and how stored bytes follow it.

A type may become wider (BYTE -> SHORT -> INT -> LONG, FLOAT -> DOUBLE, CHAR -> STRING, a DECIMAL with more digits
before or behind the point), and one whose fields have names (a named row, a dataclass, NamedTuple or struct) may gain
fields that have a default or may be None, lose fields and reorder them. The rules hold inside of composites too; the
keys of a map must stay different from each other, so that theirs lose no field. Nothing else may change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.types.storage_forms import form_of
from holdfast.types.typeinfo import (
    BasicType,
    BasicTypeInfo,
    ClassTypeInfo,
    DecimalTypeInfo,
    ElementsTypeInfo,
    FieldsTypeInfo,
    MapTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)

#: from a stored value of the old type to one of the new type
Change = Callable[[Any], Any]

_WIDER = {
    BasicType.BYTE: (BasicType.SHORT, BasicType.INT, BasicType.LONG),
    BasicType.SHORT: (BasicType.INT, BasicType.LONG),
    BasicType.INT: (BasicType.LONG,),
    BasicType.FLOAT: (BasicType.DOUBLE,),
    BasicType.CHAR: (BasicType.STRING,),
}
#: In the place of a position: the old type does not have the field.
_ABSENT = -1

NamedFields = RowTypeInfo | ClassTypeInfo | TupleTypeInfo


def _same(stored: Any) -> Any:
    return stored


def change_between(old: TypeInformation, new: TypeInformation) -> Change | None:
    """How stored values of ``old`` become those of ``new``; None when the types are incompatible."""
    if old == new:
        return _same
    if isinstance(old, BasicTypeInfo) and isinstance(new, BasicTypeInfo):
        return _same if new.basic in _WIDER.get(old.basic, ()) else None
    if isinstance(old, DecimalTypeInfo) and isinstance(new, DecimalTypeInfo):
        whole = new.precision - new.scale >= old.precision - old.scale
        return _same if whole and new.scale >= old.scale else None
    if named_alike(old, new):
        assert isinstance(old, NamedFields) and isinstance(new, NamedFields)
        return _change_named(old, new)
    if type(old) is not type(new) or isinstance(old, ClassTypeInfo):
        return None
    if isinstance(old, ElementsTypeInfo) and isinstance(new, ElementsTypeInfo):
        return _change_elements(old, new)
    if isinstance(old, MapTypeInfo) and isinstance(new, MapTypeInfo):
        return _change_map(old, new)
    if _has_names(old) != _has_names(new):
        return None
    if isinstance(old, FieldsTypeInfo) and isinstance(new, FieldsTypeInfo):
        return _change_positions(old, new)
    return None


def _change_elements(old: ElementsTypeInfo, new: ElementsTypeInfo) -> Change | None:
    change = change_between(old.element_type, new.element_type)
    return None if change is None else lambda stored: [_apply(change, part) for part in stored]


def _change_map(old: MapTypeInfo, new: MapTypeInfo) -> Change | None:
    key, value = change_between(old.key_type, new.key_type), change_between(old.value_type, new.value_type)
    if key is None or value is None or not loses_nothing(old.key_type, new.key_type):
        return None

    def change(stored: Any) -> Any:
        if isinstance(stored, dict):
            return {key(name): _apply(value, part) for name, part in stored.items()}
        return [(key(name), _apply(value, part)) for name, part in stored]

    return change


def _change_positions(old: FieldsTypeInfo, new: FieldsTypeInfo) -> Change | None:
    if len(old.field_types) != len(new.field_types):
        return None
    changes = [change_between(*pair) for pair in zip(old.field_types, new.field_types, strict=True)]
    possible = [change for change in changes if change is not None]
    if len(possible) < len(changes):
        return None
    return lambda stored: [_apply(change, part) for change, part in zip(possible, stored, strict=True)]


def _change_named(old: NamedFields, new: NamedFields) -> Change | None:
    """Fields that are new have their default."""
    sources = sources_of(old, new)
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
            change(None) if position == _ABSENT else _apply(change, stored[position]) for position, change in reads
        ]

    return change_all


def sources_of(old: NamedFields, new: NamedFields) -> list[int | None]:
    """For each field of ``new`` the position of its value in ``old``: under its name, or under one of its aliases."""
    positions = {name: position for position, name in enumerate(old.field_names)}
    aliases = (new.aliases or {}) if isinstance(new, RowTypeInfo) else {}
    return [
        next((positions[known] for known in (name, *aliases.get(name, ())) if known in positions), None)
        for name in new.field_names
    ]


def loses_nothing(old: TypeInformation, new: TypeInformation) -> bool:
    """Whether different values of ``old`` stay different as values of ``new``: no field is left out."""
    if named_alike(old, new):
        assert isinstance(old, NamedFields) and isinstance(new, NamedFields)
        sources = sources_of(old, new)
        kept = {source for source in sources if source is not None}
        return len(kept) == len(old.field_names) and all(
            loses_nothing(old.field_types[source], field)
            for source, field in zip(sources, new.field_types, strict=True)
            if source is not None
        )
    if isinstance(old, FieldsTypeInfo) and isinstance(new, FieldsTypeInfo):
        return all(map(loses_nothing, old.field_types, new.field_types))
    if isinstance(old, ElementsTypeInfo) and isinstance(new, ElementsTypeInfo):
        return loses_nothing(old.element_type, new.element_type)
    if isinstance(old, MapTypeInfo) and isinstance(new, MapTypeInfo):
        return loses_nothing(old.value_type, new.value_type)
    return True


def named_alike(old: TypeInformation, new: TypeInformation) -> bool:
    """Whether both are rows or tuples with names, or both the class of one name, of whatever kind."""
    if isinstance(old, ClassTypeInfo) and isinstance(new, ClassTypeInfo):
        return old.class_name == new.class_name
    return type(old) is type(new) and _has_names(old) and _has_names(new)


def _has_names(type_info: TypeInformation) -> bool:
    return isinstance(type_info, (RowTypeInfo, TupleTypeInfo)) and type_info.named


def _default_stored(field: TypeInformation, default: Callable[[], Any]) -> Change:
    pack = form_of(field).pack
    return lambda _: None if (value := default()) is None else pack(value)


def _apply(change: Change, part: Any) -> Any:
    return None if part is None else change(part)
