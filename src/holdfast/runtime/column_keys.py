"""Keys that columns can be grouped by."""

from __future__ import annotations

from holdfast.types.typeinfo import INTEGERS, BasicType, BasicTypeInfo, TupleTypeInfo, TypeInformation

#: Keys that are the same exactly when Arrow says so.
COLUMN_KEYS = (*INTEGERS, BasicType.STRING, BasicType.BYTES, BasicType.BOOLEAN, BasicType.SQL_DATE)


def are_column_keys(key_type: TypeInformation) -> bool:
    """Whether equal keys of a type, each field of them, are equal to Arrow."""
    fields = key_type.field_types if isinstance(key_type, TupleTypeInfo) else (key_type,)
    return all(isinstance(one, BasicTypeInfo) and one.basic in COLUMN_KEYS for one in fields)
