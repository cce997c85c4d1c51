"""How keys follow a change of their type.

Keys of a map may change as values may, as long as different keys stay different. The keys of a stream must keep their
hash as well: it says in which key group, and so in which subtask, their state is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.types.type_changes import NamedFields, change_between, loses_nothing, named_alike, sources_of
from holdfast.types.typeinfo import (
    BasicType,
    BasicTypeInfo,
    DecimalTypeInfo,
    ElementsTypeInfo,
    FieldsTypeInfo,
    TypeInformation,
)
from holdfast.types.xxhash64 import MAX_LONG_DIGITS

#: From a key of the old type to what the new type takes for it.
KeyChange = Callable[[Any], Any]

#: Within each of these the hash does not depend on the type.
_HASHED_ALIKE = (
    frozenset([BasicType.BYTE, BasicType.SHORT, BasicType.INT]),
    frozenset([BasicType.CHAR, BasicType.STRING]),
)


def key_change(old: TypeInformation, new: TypeInformation) -> KeyChange | None:
    """None when keys of ``old`` cannot become keys of ``new``, or different ones might become one."""
    if change_between(old, new) is None or not loses_nothing(old, new):
        return None
    return _change(old, new)


def keeps_hash(old: TypeInformation, new: TypeInformation) -> bool:
    """Whether every key has the same hash before and behind its ``key_change``."""
    if old == new:
        return True
    if isinstance(old, BasicTypeInfo) and isinstance(new, BasicTypeInfo):
        return any({old.basic, new.basic} <= alike for alike in _HASHED_ALIKE)
    if isinstance(old, DecimalTypeInfo) and isinstance(new, DecimalTypeInfo):
        return old.scale == new.scale and (old.precision <= MAX_LONG_DIGITS) == (new.precision <= MAX_LONG_DIGITS)
    if named_alike(old, new):
        assert isinstance(old, NamedFields) and isinstance(new, NamedFields)
        return _named_keep_hash(old, new)
    if isinstance(old, ElementsTypeInfo) and isinstance(new, ElementsTypeInfo):
        return keeps_hash(old.element_type, new.element_type)
    if isinstance(old, FieldsTypeInfo) and isinstance(new, FieldsTypeInfo):
        return all(map(keeps_hash, old.field_types, new.field_types))
    return False


def _named_keep_hash(old: NamedFields, new: NamedFields) -> bool:
    """Fields are hashed in their order, and those that are None are passed over."""
    sources = sources_of(old, new)
    kept = [source for source in sources if source is not None]
    defaults = [new.default_of(name) for name, source in zip(new.field_names, sources, strict=True) if source is None]
    pairs = ((old.field_types[s], field) for s, field in zip(sources, new.field_types, strict=True) if s is not None)
    return (
        kept == sorted(kept)
        and all(default is not None and default() is None for default in defaults)
        and all(keeps_hash(*pair) for pair in pairs)
    )


def _change(old: TypeInformation, new: TypeInformation) -> KeyChange:
    if named_alike(old, new):
        assert isinstance(old, NamedFields) and isinstance(new, NamedFields)
        return _change_named(old, new)
    if isinstance(old, ElementsTypeInfo) and isinstance(new, ElementsTypeInfo):
        element = _change(old.element_type, new.element_type)
        return lambda key: tuple([_optional(element, part) for part in key])
    if isinstance(old, FieldsTypeInfo) and isinstance(new, FieldsTypeInfo):
        changes = list(map(_change, old.field_types, new.field_types))
        return lambda key: tuple([_optional(change, part) for change, part in zip(changes, key, strict=True)])
    return lambda key: key


def _change_named(old: NamedFields, new: NamedFields) -> KeyChange:
    """Keys of the old type are rows here, of whatever class they were."""
    reads: list[KeyChange] = []
    for name, field, source in zip(new.field_names, new.field_types, sources_of(old, new), strict=True):
        if source is None:
            default = new.default_of(name)
            assert default is not None, "the types are compatible"
            reads.append(_defaulting(default))
        else:
            reads.append(_reading(source, _change(old.field_types[source], field)))
    return lambda key: tuple([read(key) for read in reads])


def _defaulting(default: Callable[[], Any]) -> KeyChange:
    return lambda key: default()


def _reading(position: int, change: KeyChange) -> KeyChange:
    return lambda key: _optional(change, key[position])


def _optional(change: KeyChange, part: Any) -> Any:
    return None if part is None else change(part)
