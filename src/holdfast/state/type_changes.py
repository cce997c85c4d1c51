"""What may happen to a type between two runs of a program, and how stored bytes follow it.

A type may become wider (BYTE -> SHORT -> INT -> LONG, FLOAT -> DOUBLE), and one whose fields have names (a named row, a
dataclass) may gain fields that have a default or may be None, lose fields and reorder them. The rules hold inside of
composites too. Nothing else may change.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable
from typing import Any

from holdfast.state.storage_forms import form_of
from holdfast.types.typeinfo import (
    BasicType,
    BasicTypeInfo,
    DataclassTypeInfo,
    ElementsTypeInfo,
    FieldsTypeInfo,
    MapTypeInfo,
    RowTypeInfo,
    TypeInformation,
)

#: from a stored value of the old type to one of the new type
Change = Callable[[Any], Any]

_WIDER = {
    BasicType.BYTE: (BasicType.SHORT, BasicType.INT, BasicType.LONG),
    BasicType.SHORT: (BasicType.INT, BasicType.LONG),
    BasicType.INT: (BasicType.LONG,),
    BasicType.FLOAT: (BasicType.DOUBLE,),
}


def _same(stored: Any) -> Any:
    return stored


def change_between(old: TypeInformation, new: TypeInformation) -> Change | None:
    """How stored values of ``old`` become those of ``new``; None when the types are incompatible."""
    if old == new:
        return _same
    if isinstance(old, BasicTypeInfo) and isinstance(new, BasicTypeInfo):
        return _same if new.basic in _WIDER.get(old.basic, ()) else None
    if type(old) is not type(new):
        return None
    if isinstance(old, ElementsTypeInfo) and isinstance(new, ElementsTypeInfo):
        return _change_elements(old, new)
    if isinstance(old, MapTypeInfo) and isinstance(new, MapTypeInfo):
        return _change_map(old, new)
    if isinstance(old, DataclassTypeInfo) and isinstance(new, DataclassTypeInfo):
        return _change_dataclass(old, new)
    if isinstance(old, RowTypeInfo) and isinstance(new, RowTypeInfo):
        if old.named != new.named:
            return None
        return _change_named(old, new) if new.named else _change_positions(old, new)
    if isinstance(old, FieldsTypeInfo) and isinstance(new, FieldsTypeInfo):
        return _change_positions(old, new)
    return None


def _change_elements(old: ElementsTypeInfo, new: ElementsTypeInfo) -> Change | None:
    change = change_between(old.element_type, new.element_type)
    return None if change is None else lambda stored: [_apply(change, part) for part in stored]


def _change_map(old: MapTypeInfo, new: MapTypeInfo) -> Change | None:
    key, value = change_between(old.key_type, new.key_type), change_between(old.value_type, new.value_type)
    if key is None or value is None:
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


def _change_named(old: RowTypeInfo, new: RowTypeInfo) -> Change | None:
    """Fields that are new are None."""
    kept = _kept_fields(old, new)
    if kept is None:
        return None
    positions = {name: position for position, name in enumerate(old.field_names)}
    reads = [(positions[name], kept[name]) if name in kept else None for name in new.field_names]
    return lambda stored: [None if read is None else _apply(read[1], stored[read[0]]) for read in reads]


def _change_dataclass(old: DataclassTypeInfo, new: DataclassTypeInfo) -> Change | None:
    """Fields that are new have their default, or are None where they may be."""
    kept = _kept_fields(old, new)
    if old.class_name != new.class_name or kept is None:
        return None
    added = {name: _default(new, name) for name in new.field_names if name not in kept}
    defaults = {name: default for name, default in added.items() if default is not None}
    if len(defaults) < len(added):
        return None

    def change(stored: Any) -> Any:
        return {
            name: _apply(kept[name], stored[name]) if name in kept else defaults[name]() for name in new.field_names
        }

    return change


def _kept_fields(old: FieldsTypeInfo, new: FieldsTypeInfo) -> dict[str, Change] | None:
    """The changes of the fields that both have. None when one is impossible, or when none is left."""
    types_before = dict(zip(old.field_names, old.field_types, strict=True))
    kept: dict[str, Change] = {}
    for name, field in zip(new.field_names, new.field_types, strict=True):
        if name in types_before:
            change = change_between(types_before[name], field)
            if change is None:
                return None
            kept[name] = change
    return kept or None


def _default(type_info: DataclassTypeInfo, name: str) -> Callable[[], Any] | None:
    """Makes the stored value of a field that old values do not have; None when the dataclass says none."""
    cls = type_info.require_class()
    field = next(field for field in dataclasses.fields(cls) if field.name == name)
    pack = form_of(type_info.field_types[type_info.field_names.index(name)]).pack
    if field.default is not dataclasses.MISSING:
        return lambda: None if field.default is None else pack(field.default)
    if field.default_factory is not dataclasses.MISSING:
        make = field.default_factory
        return lambda: pack(make())
    hint = typing.get_type_hints(cls)[name]
    optional = typing.get_origin(hint) in (typing.Union, types.UnionType) and type(None) in typing.get_args(hint)
    return (lambda: None) if optional else None


def _apply(change: Change, part: Any) -> Any:
    return None if part is None else change(part)
