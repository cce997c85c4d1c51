"""Columns of tables: Python values to Arrow and back, whole columns at a time, exactly.

A column is made from two functions that see no None; nulls are put around them here. Columns of composites are made of
the columns of their parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, pairwise
from typing import Any

import numpy as np
import pyarrow as pa

Write = Callable[[Sequence[Any]], pa.Array]
Read = Callable[[pa.Array], list[Any]]


@dataclass(frozen=True)
class Column:
    """``write_present`` and ``read_present`` are each other's inverse; where that does not hold for all values,
    ``exact`` is False, and whoever writes must look.
    """

    arrow_type: pa.DataType
    write_present: Write
    read_present: Read
    exact: bool = True

    def write(self, values: Sequence[Any]) -> pa.Array:
        """An array with a null for every None."""
        missing = [value is None for value in values]
        if not any(missing):
            return self.write_present(values)
        present = self.write_present([value for value in values if value is not None])
        places = iter(range(len(present)))
        return present.take(pa.array([None if absent else next(places) for absent in missing], pa.int64()))

    def read(self, array: pa.Array) -> list[Any]:
        if not array.null_count:
            return self.read_present(array)
        present = iter(self.read_present(array.drop_null()))
        return [next(present) if valid else None for valid in array.is_valid().to_pylist()]

    def mapped(
        self, before: Callable[[Sequence[Any]], Sequence[Any]], after: Callable[[list[Any]], list[Any]]
    ) -> Column:
        """The column of other values, which become those of this one by ``before`` and come back by ``after``."""
        write, read = self.write_present, self.read_present
        return replace(self, write_present=lambda v: write(before(v)), read_present=lambda array: after(read(array)))


def plain(arrow_type: pa.DataType) -> Column:
    """Values that Arrow takes and gives back as they are."""
    return Column(arrow_type, lambda values: pa.array(values, arrow_type), pa.Array.to_pylist)


def counted(arrow_type: pa.DataType, width: pa.DataType) -> Column:
    """Integers, which ``arrow_type`` counts something with: days, microseconds."""
    return Column(
        arrow_type,
        lambda values: pa.array(values, width).view(arrow_type),
        lambda array: array.view(width).to_pylist(),
    )


def packed(arrow_type: pa.DataType, stored: str, native: str, width: pa.DataType | None = None) -> Column:
    """Numbers as bytes of a fixed width, which numpy knows as ``stored`` and Arrow as ``native``."""
    plain_type = width or arrow_type

    def write(values: Sequence[bytes]) -> pa.Array:
        numbers = np.frombuffer(b"".join(values), stored).astype(native)
        return pa.array(numbers, plain_type).view(arrow_type)

    def read(array: pa.Array) -> list[Any]:
        numbers = array.view(plain_type).to_numpy(zero_copy_only=False).astype(stored)
        return fixed_width(numbers.tobytes(), numbers.itemsize)

    return Column(arrow_type, write, read)


def fixed_width(data: bytes, width: int) -> list[bytes]:
    """The pieces of ``width`` bytes that ``data`` is made of."""
    pieces: list[bytes] = np.frombuffer(data, f"V{width}").tolist()
    return pieces


def text() -> Column:
    """Text as UTF-8 bytes."""
    return Column(
        pa.string(),
        lambda values: pa.array(values, pa.binary()).cast(pa.string()),
        lambda array: array.cast(pa.binary()).to_pylist(),
    )


def struct(names: Sequence[str], columns: Sequence[Column]) -> Column:
    """Tuples."""
    fields = [pa.field(name, column.arrow_type) for name, column in zip(names, columns, strict=True)]

    def write(values: Sequence[Any]) -> pa.Array:
        parts: Sequence[Sequence[Any]] = list(zip(*values, strict=True)) if len(values) else [()] * len(columns)
        arrays = [column.write(part) for column, part in zip(columns, parts, strict=True)]
        return pa.StructArray.from_arrays(arrays, fields=fields)

    def read(array: pa.Array) -> list[Any]:
        # flatten() and not field(): it applies the struct's own offset to its children.
        parts = [column.read(child) for column, child in zip(columns, array.flatten(), strict=True)]
        return list(zip(*parts, strict=True))

    return Column(pa.struct(fields), write, read, all(column.exact for column in columns))


def elements(column: Column) -> Column:
    """Lists."""
    arrow_type = pa.list_(column.arrow_type)

    def write(values: Sequence[Any]) -> pa.Array:
        flat = column.write(list(chain.from_iterable(values)))
        return pa.ListArray.from_arrays(_offsets(values), flat).cast(arrow_type)

    def read(array: pa.Array) -> list[Any]:
        offsets: list[int] = array.offsets.to_pylist()
        first, last = (offsets[0], offsets[-1]) if offsets else (0, 0)
        flat = column.read(array.values.slice(first, last - first))
        return [flat[start - first : end - first] for start, end in pairwise(offsets)]

    return Column(arrow_type, write, read, column.exact)


def mapping(key: Column, value: Column) -> Column:
    """Maps, as lists of pairs."""
    arrow_type = pa.map_(key.arrow_type, value.arrow_type)

    def write(values: Sequence[Any]) -> pa.Array:
        pairs = list(chain.from_iterable(values))
        keys, items = key.write([name for name, _ in pairs]), value.write([part for _, part in pairs])
        return pa.MapArray.from_arrays(_offsets(values), keys, items, type=arrow_type)

    def read(array: pa.Array) -> list[Any]:
        offsets: list[int] = array.offsets.to_pylist()
        first, last = (offsets[0], offsets[-1]) if offsets else (0, 0)
        keys = key.read(array.keys.slice(first, last - first))
        pairs = list(zip(keys, value.read(array.items.slice(first, last - first)), strict=True))
        return [pairs[start - first : end - first] for start, end in pairwise(offsets)]

    return Column(arrow_type, write, read, key.exact and value.exact)


def _offsets(values: Sequence[Any]) -> pa.Array:
    return pa.array([0, *accumulate(map(len, values))], pa.int32())
