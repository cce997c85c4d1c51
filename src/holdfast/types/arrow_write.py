"""Lists of Python values to columns of Arrow, with every value checked against the declared type.

Arrow converts by itself more than a declared type allows: 1.5 becomes 1 in a column of integers, text becomes bytes, a
number becomes a time. So the classes of a column's values are looked at first, in one pass that runs in C.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from holdfast.types.qualified_names import qualified_name
from holdfast.types.row import Row

if TYPE_CHECKING:
    from holdfast.types.contract import TypeInformation

#: An array of the type's own Arrow type; raises ValueError, TypeError or an Arrow error for a value of another type.
ColumnWriter = Callable[[Sequence[Any]], pa.Array]

#: Takes records apart, one sequence per field; raises where one has another shape.
SplitRecords = Callable[[Sequence[Any]], list[Sequence[Any]]]

_NONE = type(None)


def columns_from_records(count: int, names: tuple[str, ...] | None) -> SplitRecords:
    """Takes tuples or rows apart; ``names`` are None where they have positions only."""

    def split(records: Sequence[Any]) -> list[Sequence[Any]]:
        return fields_of(_in_field_order(records, names), count)

    return split


def fields_of(records: Sequence[Sequence[Any]], count: int) -> list[Sequence[Any]]:
    """The values of each field of records that have so many. Not by ``zip(*records)``: it makes an object for each
    record, and the garbage collector looks at whatever else there is again and again.
    """
    sizes = set(map(len, records))
    if not sizes <= {count}:
        raise ValueError(f"it has {min(sizes - {count})} fields and not {count}")
    values = list(chain.from_iterable(records))
    return [values[position::count] for position in range(count)]


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


def columns_from_instances(class_name: str, names: Sequence[str]) -> SplitRecords:
    """Takes instances of a class apart."""
    getters = [attrgetter(name) for name in names]

    def split(records: Sequence[Any]) -> list[Sequence[Any]]:
        for cls in set(map(type, records)):
            # By name, because a class of the main program is another object in every process.
            if all(qualified_name(base) != class_name for base in cls.__mro__):
                raise TypeError(f"it is a {cls.__name__} and not a {class_name}")
        return [list(map(getter, records)) for getter in getters]

    return split


def checked_writer(
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


def one_character(value: str) -> str:
    if len(value) != 1:
        raise ValueError(f"{value!r} is not one character")
    return value


def list_writer(write_elements: ColumnWriter, arrow_type: pa.DataType) -> ColumnWriter:
    def write(values: Sequence[Any]) -> pa.Array:
        for cls in set(map(type, values)):
            if cls is not _NONE and not issubclass(cls, (list, tuple)):
                raise TypeError(f"{cls.__name__} is not a list")
        elements = write_elements([element for value in values if value is not None for element in value])
        return pa.ListArray.from_arrays(_offsets(values), elements, type=arrow_type)

    return write


def map_writer(write_keys: ColumnWriter, write_values: ColumnWriter, arrow_type: pa.DataType) -> ColumnWriter:
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


def struct_writer(split: SplitRecords, writers: Sequence[ColumnWriter], arrow_type: pa.DataType) -> ColumnWriter:
    fields = list(arrow_type)

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
