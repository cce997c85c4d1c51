"""``Types``: the factories of type information. The types themselves are in ``information.py``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.types.avro import avro_type
from holdfast.types.classes import ClassTypeInfo, DataclassTypeInfo, NamedTupleTypeInfo, StructTypeInfo
from holdfast.types.information import (
    BasicArrayTypeInfo,
    BasicType,
    BasicTypeInfo,
    DecimalTypeInfo,
    ElementsTypeInfo,
    FieldsTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PickledBytesTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    positional_names,
)

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
    "Types",
]


class Types:
    """Factories of type information, with PyFlink's names. BYTES, DECIMAL, TIMESTAMP_LTZ and AVRO are our own."""

    @staticmethod
    def STRING() -> TypeInformation:
        """Python str."""
        return BasicTypeInfo(BasicType.STRING)

    @staticmethod
    def BYTES() -> TypeInformation:
        """Python bytes."""
        return BasicTypeInfo(BasicType.BYTES)

    @staticmethod
    def BYTE() -> TypeInformation:
        """Python int of 8 bits."""
        return BasicTypeInfo(BasicType.BYTE)

    @staticmethod
    def BOOLEAN() -> TypeInformation:
        return BasicTypeInfo(BasicType.BOOLEAN)

    @staticmethod
    def SHORT() -> TypeInformation:
        """Python int of 16 bits."""
        return BasicTypeInfo(BasicType.SHORT)

    @staticmethod
    def INT() -> TypeInformation:
        """Python int of 32 bits."""
        return BasicTypeInfo(BasicType.INT)

    @staticmethod
    def LONG() -> TypeInformation:
        """Python int of 64 bits."""
        return BasicTypeInfo(BasicType.LONG)

    @staticmethod
    def FLOAT() -> TypeInformation:
        """Python float, stored with 32 bits."""
        return BasicTypeInfo(BasicType.FLOAT)

    @staticmethod
    def DOUBLE() -> TypeInformation:
        return BasicTypeInfo(BasicType.DOUBLE)

    @staticmethod
    def CHAR() -> TypeInformation:
        """Python str of one character."""
        return BasicTypeInfo(BasicType.CHAR)

    @staticmethod
    def BIG_INT() -> TypeInformation:
        """Python int of any size."""
        return BasicTypeInfo(BasicType.BIG_INT)

    @staticmethod
    def BIG_DEC() -> TypeInformation:
        """``decimal.Decimal`` of any precision."""
        return BasicTypeInfo(BasicType.BIG_DEC)

    @staticmethod
    def DECIMAL(precision: int = 10, scale: int = 0) -> TypeInformation:
        """``decimal.Decimal`` of fixed precision and scale, as Spark's ``decimal(p, s)``."""
        return DecimalTypeInfo(precision, scale)

    @staticmethod
    def INSTANT() -> TypeInformation:
        """``holdfast.common.Instant``, between the years 1677 and 2262."""
        return BasicTypeInfo(BasicType.INSTANT)

    @staticmethod
    def SQL_DATE() -> TypeInformation:
        """``datetime.date``."""
        return BasicTypeInfo(BasicType.SQL_DATE)

    @staticmethod
    def SQL_TIME() -> TypeInformation:
        """``datetime.time`` without a time zone."""
        return BasicTypeInfo(BasicType.SQL_TIME)

    @staticmethod
    def SQL_TIMESTAMP() -> TypeInformation:
        """``datetime.datetime`` without a time zone: Spark's ``timestamp_ntz``. Aware values are turned to UTC."""
        return BasicTypeInfo(BasicType.SQL_TIMESTAMP)

    @staticmethod
    def TIMESTAMP_LTZ() -> TypeInformation:
        """``datetime.datetime`` in UTC: Spark's ``timestamp``. Naive values are taken as UTC."""
        return BasicTypeInfo(BasicType.TIMESTAMP_LTZ)

    @staticmethod
    def PICKLED_BYTE_ARRAY() -> TypeInformation:
        """Any Python object, pickled."""
        return PickledBytesTypeInfo()

    @staticmethod
    def ROW(field_types: Sequence[TypeInformation]) -> RowTypeInfo:
        """``Row`` with values by position."""
        return RowTypeInfo(tuple(field_types), positional_names(len(field_types)), named=False)

    @staticmethod
    def ROW_NAMED(field_names: Sequence[str], field_types: Sequence[TypeInformation]) -> RowTypeInfo:
        """``Row`` with names."""
        return RowTypeInfo(tuple(field_types), tuple(field_names))

    @staticmethod
    def TUPLE(field_types: Sequence[TypeInformation]) -> TupleTypeInfo:
        """Python tuple of a fixed length."""
        return TupleTypeInfo(field_types)

    @staticmethod
    def PRIMITIVE_ARRAY(element_type: TypeInformation) -> TypeInformation:
        """Python list of numbers or booleans; of BYTE it is Python bytes, as in PyFlink."""
        if element_type == Types.BYTE():
            return Types.BYTES()
        return PrimitiveArrayTypeInfo(element_type)

    @staticmethod
    def BASIC_ARRAY(element_type: TypeInformation) -> TypeInformation:
        """Python list of a basic type."""
        return BasicArrayTypeInfo(element_type)

    @staticmethod
    def OBJECT_ARRAY(element_type: TypeInformation) -> TypeInformation:
        """Python list of any type."""
        return ObjectArrayTypeInfo(element_type)

    @staticmethod
    def MAP(key_type_info: TypeInformation, value_type_info: TypeInformation) -> TypeInformation:
        """Python dict."""
        return MapTypeInfo(key_type_info, value_type_info)

    @staticmethod
    def LIST(element_type_info: TypeInformation) -> TypeInformation:
        """Python list."""
        return ListTypeInfo(element_type_info)

    @staticmethod
    def AVRO(schema: Mapping[str, Any] | str) -> TypeInformation:
        """The type of an Avro schema, given as JSON text or as what that says: a record is a ``Row`` with names, whose
        fields follow the schema's defaults and aliases when it changes.
        """
        return avro_type(schema)
