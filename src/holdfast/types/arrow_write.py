"""Lists of Python values to columns of Arrow, with every value checked against the declared type.

Arrow converts by itself more than a declared type allows: 1.5 becomes 1 in a column of integers, text becomes bytes, a
number becomes a time. So the classes of a column's values are looked at first, in one pass that runs in C.
"""

from __future__ import annotations

import datetime
import decimal
import numbers
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa

from holdfast.types import pickling
from holdfast.types.classes import ClassTypeInfo, qualified_name
from holdfast.types.information import (
    BasicType,
    BasicTypeInfo,
    DecimalTypeInfo,
    ElementsTypeInfo,
    FieldsTypeInfo,
    MapTypeInfo,
    PickledBytesTypeInfo,
    RowTypeInfo,
    TypeInformation,
)
from holdfast.types.instant import Instant
from holdfast.types.row import Row

#: An array of the type's own Arrow type; raises ValueError, TypeError or an Arrow error for a value of another type.
ColumnWriter = Callable[[Sequence[Any]], pa.Array]

_NONE = type(None)
_INTEGERS = (int, numbers.Integral)
_NUMBERS = (float, int, numbers.Real)

#: The classes a type's values may have, and those that are never meant although they are subclasses.
_CLASSES: dict[BasicType, tuple[tuple[type, ...], tuple[type, ...]]] = {
    BasicType.STRING: ((str,), ()),
    BasicType.CHAR: ((str,), ()),
    BasicType.BYTES: ((bytes, bytearray, memoryview), ()),
    BasicType.BOOLEAN: ((bool, np.bool_), ()),
    BasicType.BYTE: (_INTEGERS, (bool,)),
    BasicType.SHORT: (_INTEGERS, (bool,)),
    BasicType.INT: (_INTEGERS, (bool,)),
    BasicType.LONG: (_INTEGERS, (bool,)),
    BasicType.BIG_INT: (_INTEGERS, (bool,)),
    BasicType.FLOAT: (_NUMBERS, (bool, decimal.Decimal)),
    BasicType.DOUBLE: (_NUMBERS, (bool, decimal.Decimal)),
    BasicType.BIG_DEC: ((decimal.Decimal, int), (bool,)),
    BasicType.INSTANT: ((Instant,), ()),
    BasicType.SQL_DATE: ((datetime.date,), (datetime.datetime,)),
    BasicType.SQL_TIME: ((datetime.time,), ()),
    BasicType.SQL_TIMESTAMP: ((datetime.datetime,), ()),
    BasicType.TIMESTAMP_LTZ: ((datetime.datetime,), ()),
}


def column_writer(type_info: TypeInformation) -> ColumnWriter:
    if isinstance(type_info, BasicTypeInfo):
        return _basic_writer(type_info)
    if isinstance(type_info, DecimalTypeInfo):
        return _checked_writer(type_info, (decimal.Decimal, int), (bool,))
    if isinstance(type_info, PickledBytesTypeInfo):
        return lambda values: pa.array(list(map(pickling.dumps, values)), pa.binary())
    if isinstance(type_info, ElementsTypeInfo):
        return _list_writer(type_info)
    if isinstance(type_info, MapTypeInfo):
        return _map_writer(type_info)
    if isinstance(type_info, FieldsTypeInfo):
        return _struct_writer(type_info)
    raise TypeError(f"{type_info!r} has no Arrow form")


def columns_from_records(type_info: FieldsTypeInfo) -> Callable[[Sequence[Any]], list[Sequence[Any]]]:
    """Takes tuples, rows or instances of a class apart, one sequence per field; raises where one has another shape."""
    if isinstance(type_info, ClassTypeInfo):
        return _columns_from_instances(type_info)
    count = len(type_info.field_types)
    names = type_info.field_names if isinstance(type_info, RowTypeInfo) and type_info.named else None

    def split(records: Sequence[Any]) -> list[Sequence[Any]]:
        if not records:
            return [()] * count
        ordered = _in_field_order(records, names)
        columns: list[Sequence[Any]] = list(zip(*ordered, strict=True))
        if len(columns) != count:
            raise ValueError(f"it has {len(columns)} fields and not {count}")
        return columns

    return split


def _in_field_order(records: Sequence[Any], names: tuple[str, ...] | None) -> Sequence[Any]:
    """The records, with the values of rows that have the declared names in another order put into the declared one."""
    permuted: set[type] = set()
    for cls in set(map(type, records)):
        if not issubclass(cls, (tuple, list)):
            raise TypeError(f"it is a {cls.__name__} and neither a tuple nor a Row")
        fields = cls._fields if issubclass(cls, Row) else None
        if names is not None and fields is not None and fields != names and set(fields) == set(names):
            permuted.add(cls)
    if not permuted or names is None:
        return records
    return [row.get_fields_by_names(names) if type(row) in permuted else row for row in records]


def _columns_from_instances(type_info: ClassTypeInfo) -> Callable[[Sequence[Any]], list[Sequence[Any]]]:
    getters = [attrgetter(name) for name in type_info.field_names]

    def split(records: Sequence[Any]) -> list[Sequence[Any]]:
        for cls in set(map(type, records)):
            # By name, because a class of the main program is another object in every process.
            if all(qualified_name(base) != type_info.class_name for base in cls.__mro__):
                raise TypeError(f"it is a {cls.__name__} and not a {type_info.class_name}")
        return [list(map(getter, records)) for getter in getters]

    return split


def _basic_writer(type_info: BasicTypeInfo) -> ColumnWriter:
    allowed, refused = _CLASSES[type_info.basic]
    if type_info.basic in (BasicType.BIG_INT, BasicType.BIG_DEC):
        return _checked_writer(type_info, allowed, refused, str)
    if type_info.basic is BasicType.INSTANT:
        return _checked_writer(type_info, allowed, refused, Instant.to_epoch_nano)
    if type_info.basic is BasicType.CHAR:
        return _checked_writer(type_info, allowed, refused, _one_character)
    if type_info.basic is BasicType.BYTES:
        # Arrow never lets go of what a memoryview shows.
        return _checked_writer(type_info, allowed, refused, bytes)
    return _checked_writer(type_info, allowed, refused)


def _checked_writer(
    type_info: TypeInformation,
    allowed: tuple[type, ...],
    refused: tuple[type, ...],
    convert: Callable[[Any], Any] | None = None,
) -> ColumnWriter:
    arrow_type = type_info.arrow_type()
    usual = {_NONE, *allowed}

    def write(values: Sequence[Any]) -> pa.Array:
        for cls in set(map(type, values)) - usual:
            if issubclass(cls, refused) or not issubclass(cls, allowed):
                raise TypeError(f"{cls.__name__} is not {type_info.describe()}")
        if convert is not None:
            values = [None if value is None else convert(value) for value in values]
        return pa.array(values, arrow_type)

    return write


def _one_character(value: str) -> str:
    if len(value) != 1:
        raise ValueError(f"{value!r} is not one character")
    return value


def _list_writer(type_info: ElementsTypeInfo) -> ColumnWriter:
    write_elements, arrow_type = column_writer(type_info.element_type), type_info.arrow_type()

    def write(values: Sequence[Any]) -> pa.Array:
        for cls in set(map(type, values)):
            if cls is not _NONE and not issubclass(cls, (list, tuple)):
                raise TypeError(f"{cls.__name__} is not a list")
        elements = write_elements([element for value in values if value is not None for element in value])
        return pa.ListArray.from_arrays(_offsets(values), elements, type=arrow_type)

    return write


def _map_writer(type_info: MapTypeInfo) -> ColumnWriter:
    write_keys, write_values = column_writer(type_info.key_type), column_writer(type_info.value_type)
    arrow_type = type_info.arrow_type()

    def write(values: Sequence[Any]) -> pa.Array:
        for cls in set(map(type, values)):
            if cls is not _NONE and not issubclass(cls, dict):
                raise TypeError(f"{cls.__name__} is not a dict")
        present = [value for value in values if value is not None]
        if any(None in value for value in present):
            raise ValueError("a map has no key None")
        keys = write_keys([key for value in present for key in value])
        items = write_values([item for value in present for item in value.values()])
        return pa.MapArray.from_arrays(_offsets(values), keys, items, type=arrow_type)

    return write


def _struct_writer(type_info: FieldsTypeInfo) -> ColumnWriter:
    split, writers = columns_from_records(type_info), [column_writer(t) for t in type_info.field_types]
    fields = list(type_info.arrow_type())

    def write(values: Sequence[Any]) -> pa.Array:
        missing = [value is None for value in values]
        if not any(missing):
            columns = split(values)
            return pa.StructArray.from_arrays([w(c) for w, c in zip(writers, columns, strict=True)], fields=fields)
        present = iter(range(len(values)))
        columns = split([value for value in values if value is not None])
        positions = pa.array([None if is_missing else next(present) for is_missing in missing], pa.int64())
        arrays = [w(c).take(positions) for w, c in zip(writers, columns, strict=True)]
        return pa.StructArray.from_arrays(arrays, fields=fields, mask=pa.array(missing))

    return write


def _offsets(values: Sequence[Any]) -> pa.Array:
    """Where each list begins, null for a null list, and the end of the last."""
    offsets: list[int | None] = []
    position = 0
    for value in values:
        offsets.append(None if value is None else position)
        position += 0 if value is None else len(value)
    offsets.append(position)
    return pa.array(offsets, pa.int32())
