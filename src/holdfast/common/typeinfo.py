"""Types of rows, keys and state."""

from __future__ import annotations

from holdfast.types.resolve import resolve
from holdfast.types.typeinfo import (
    BasicArrayTypeInfo,
    BasicType,
    BasicTypeInfo,
    ClassTypeInfo,
    DataclassTypeInfo,
    DecimalTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    NamedTupleTypeInfo,
    ObjectArrayTypeInfo,
    PickledBytesTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    StructTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    Types,
)

__all__ = [
    "BasicArrayTypeInfo",
    "BasicType",
    "BasicTypeInfo",
    "ClassTypeInfo",
    "DataclassTypeInfo",
    "DecimalTypeInfo",
    "ListTypeInfo",
    "MapTypeInfo",
    "NamedTupleTypeInfo",
    "ObjectArrayTypeInfo",
    "PickledBytesTypeInfo",
    "PrimitiveArrayTypeInfo",
    "RowTypeInfo",
    "StructTypeInfo",
    "TupleTypeInfo",
    "TypeInformation",
    "Types",
    "resolve",
]
