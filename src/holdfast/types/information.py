"""Type information: what a stream's rows, a key or a state's values are.

TypeInformation
├── BasicTypeInfo            one of BasicType
├── DecimalTypeInfo          decimals of fixed precision and scale
├── PickledBytesTypeInfo     any Python object, pickled
├── ElementsTypeInfo         Python lists
│   └── ListTypeInfo, PrimitiveArrayTypeInfo, BasicArrayTypeInfo, ObjectArrayTypeInfo
├── MapTypeInfo              Python dicts
└── FieldsTypeInfo           a fixed number of fields: columns of their own in Arrow
    ├── TupleTypeInfo, RowTypeInfo
    └── ClassTypeInfo        instances of a class (classes.py)
        └── DataclassTypeInfo, NamedTupleTypeInfo, StructTypeInfo

Type information is a value: equal when it describes the same type, hashable, picklable, and ``to_json`` gives a
text-only form that stays readable for as long as there are savepoints. Every field and element may be None.
"""

from __future__ import annotations

from holdfast.types.basic_types import BasicType
from holdfast.types.classes import ClassTypeInfo, DataclassTypeInfo, NamedTupleTypeInfo, StructTypeInfo
from holdfast.types.contract import TypeInformation
from holdfast.types.elements import (
    BasicArrayTypeInfo,
    ElementsTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
)
from holdfast.types.fields import FieldsTypeInfo, RowTypeInfo, TupleTypeInfo, positional_names
from holdfast.types.scalars import BasicTypeInfo, DecimalTypeInfo, PickledBytesTypeInfo

__all__ = [
    "BasicArrayTypeInfo",
    "BasicType",
    "BasicTypeInfo",
    "ClassTypeInfo",
    "DataclassTypeInfo",
    "DecimalTypeInfo",
    "ElementsTypeInfo",
    "FieldsTypeInfo",
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
    "positional_names",
]
