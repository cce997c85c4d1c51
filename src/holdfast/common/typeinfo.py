"""Types of rows, keys and state."""

from __future__ import annotations

from holdfast.coverage.answers import answer_missing_names as _answer_missing_names
from holdfast.types.logical import LogicalTypeInfo
from holdfast.types.registry import register_type
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
    "LogicalTypeInfo",
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
    "register_type",
    "resolve",
]

_answer_missing_names(__name__)
