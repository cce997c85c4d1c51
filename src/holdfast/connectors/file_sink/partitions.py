"""Rows by the values of columns that are folders: ``country=de/day=2024-05-01``, as Hive and Spark have them."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types as kinds

from holdfast.connectors.file_sink.formats import Columns, is_undeclared
from holdfast.errors import ProgramError
from holdfast.runtime.batch import Batch
from holdfast.types.arrow import row_reader, schema_of
from holdfast.types.information import FieldsTypeInfo, TypeInformation
from holdfast.types.typeinfo import Types

#: The folder of rows without a value: Hive's name, which Spark reads as null.
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED = re.compile(r"""[\x00-\x1f\x7f"#%'*/:=?\\{}\[\]^]""")


def type_in_files(type_info: TypeInformation, columns: Sequence[str]) -> TypeInformation:
    """The columns that are left for the files. ProgramError for columns that cannot be folders."""
    if is_undeclared(type_info) or not isinstance(type_info, FieldsTypeInfo):
        raise ProgramError(
            f"partition_by{tuple(columns)} needs a stream of rows with declared columns; this one is "
            f"{type_info.describe()}. Give the operator before the sink an output_type, for instance "
            "'country STRING, amount BIGINT'."
        )
    schema = schema_of(type_info)
    for name in columns:
        index = schema.get_field_index(name)
        if index < 0:
            raise ProgramError(f"partition_by() names the column {name!r}; the stream has {schema.names}.")
        if not _can_be_a_folder(schema.field(index).type):
            raise ProgramError(
                f"The column {name!r} is {schema.field(index).type}, which cannot be the name of a folder. Partition "
                "by texts, whole numbers, booleans, dates, times or decimals; convert others in a map."
            )
        if name[0] in "._":
            raise ProgramError(f"The column {name!r} cannot be a folder: readers leave out names with '_' or '.'.")
    rest = [name for name in type_info.field_names if name not in columns]
    if not rest:
        raise ProgramError(f"partition_by{tuple(columns)} leaves no column for the files; leave one out.")
    types = dict(zip(type_info.field_names, type_info.field_types, strict=True))
    return Types.ROW_NAMED(rest, [types[name] for name in rest])


class PartitionSplitter:
    """Splits batches by the columns that are folders, a batch at a time."""

    def __init__(self, type_info: TypeInformation, columns: Sequence[str]) -> None:
        in_files = type_in_files(type_info, columns)
        self._columns = tuple(columns)
        self._rest = schema_of(in_files)
        self._all = Columns(type_info)
        self._reader = row_reader(in_files)

    def split(self, batch: Batch) -> Iterator[tuple[str, Batch]]:
        """The folder of each group of rows, and the group, its rows in their order."""
        arrow = self._all.of(batch)
        encoded = [arrow.column(name).dictionary_encode(null_encoding="encode") for name in self._columns]
        groups, first = _groups([np.asarray(column.indices) for column in encoded])
        order = np.argsort(groups, kind="stable")
        rest = pa.RecordBatch.from_arrays([arrow.column(name) for name in self._rest.names], schema=self._rest)
        rows = rest if len(first) == 1 else rest.take(pa.array(order))
        bounds = np.searchsorted(groups[order], np.arange(len(first) + 1))
        for group, row in enumerate(first):
            values = [column.dictionary[column.indices[int(row)].as_py()].as_py() for column in encoded]
            folder = "/".join(f"{_escaped(k)}={_text(v)}" for k, v in zip(self._columns, values, strict=True))
            begin, end = int(bounds[group]), int(bounds[group + 1])
            yield folder, Batch.of_arrow(rows.slice(begin, end - begin), self._reader)


def _groups(codes: list[npt.NDArray[Any]]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The number of each row's group, and for each group one of its rows."""
    groups = np.zeros(len(codes[0]), dtype=np.int64)
    first = np.zeros(1, dtype=np.int64)
    for column in codes:
        combined = groups * (int(column.max(initial=0)) + 1) + column
        # Numbered anew after each column, so that products of many columns stay small.
        _, first, groups = np.unique(combined, return_index=True, return_inverse=True)
    return groups, first


def _can_be_a_folder(data_type: pa.DataType) -> bool:
    tests = (kinds.is_string, kinds.is_integer, kinds.is_boolean, kinds.is_date, kinds.is_time, kinds.is_timestamp)
    return any(test(data_type) for test in (*tests, kinds.is_decimal))


def _text(value: Any) -> str:
    if value is None or value == "":
        return NO_VALUE
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.datetime):
        return _escaped(value.isoformat(" "))
    return _escaped(str(value))


def _escaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: f"%{ord(match.group()):02X}", text)
