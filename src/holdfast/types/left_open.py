"""Types that a program left open: their values, or parts of them, are pickled."""

from __future__ import annotations

from holdfast.types.information import (
    ElementsTypeInfo,
    FieldsTypeInfo,
    MapTypeInfo,
    PickledBytesTypeInfo,
    TypeInformation,
)


def is_pickled(type_info: TypeInformation) -> bool:
    """Whether reading a value of the type unpickles anything, at any depth."""
    if isinstance(type_info, PickledBytesTypeInfo):
        return True
    if isinstance(type_info, ElementsTypeInfo):
        return is_pickled(type_info.element_type)
    if isinstance(type_info, MapTypeInfo):
        return is_pickled(type_info.key_type) or is_pickled(type_info.value_type)
    return isinstance(type_info, FieldsTypeInfo) and any(map(is_pickled, type_info.field_types))
