"""Types without the classes of a program: what was stored under a class that may have changed, or gone, since."""

from __future__ import annotations

from holdfast.types.typeinfo import (
    ClassTypeInfo,
    ElementsTypeInfo,
    FieldsTypeInfo,
    MapTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)


def bare(type_info: TypeInformation) -> TypeInformation:
    """The type with rows in the place of instances of classes. Both are stored alike."""
    if isinstance(type_info, ElementsTypeInfo):
        return type(type_info)(bare(type_info.element_type))
    if isinstance(type_info, MapTypeInfo):
        return MapTypeInfo(bare(type_info.key_type), bare(type_info.value_type))
    if not isinstance(type_info, FieldsTypeInfo):
        return type_info
    fields = tuple(map(bare, type_info.field_types))
    if isinstance(type_info, TupleTypeInfo):
        return TupleTypeInfo(fields, type_info.field_names)
    named = isinstance(type_info, ClassTypeInfo) or (isinstance(type_info, RowTypeInfo) and type_info.named)
    return RowTypeInfo(fields, type_info.field_names, named)
