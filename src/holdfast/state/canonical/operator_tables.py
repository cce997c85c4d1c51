"""Operator state and raw state in tables: a table per named state, and one for each kind of raw state.

Lists have the columns ``position`` and ``element``, broadcast maps ``key`` and ``value``, raw state its bytes as
``data``, with ``key_group`` or ``partition``. Every part of raw state is a row group: it can be read on its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Self

import msgspec
import pyarrow as pa

from holdfast.state.canonical.keyed_tables import ROW_GROUP_BYTES, ROW_GROUP_ROWS
from holdfast.state.canonical.parquet_file import ParquetFileReader, ParquetFileWriter
from holdfast.state.canonical.places import TablePlace
from holdfast.state.canonical.schema import ValueFields, table_schema
from holdfast.state.handles import DistributionMode, FileHandle, ListStateSnapshot, OperatorTable
from holdfast.state.parts_file import PartsFileReader
from holdfast.state.snapshot_files import InlineSnapshotReader
from holdfast.state.snapshot_io import SnapshotReader, SnapshotWriter
from holdfast.storage.checksum import checksum

_RAW_KEYED = [pa.field("key_group", pa.int32()), pa.field("data", pa.binary())]
_RAW_OPERATOR = [pa.field("partition", pa.int32()), pa.field("data", pa.binary())]


class _ListTable:
    """The table of a list or of a broadcast map, whose keys and values alternate among its elements."""

    def __init__(self, mode: DistributionMode, serializers: dict[str, Any], about: dict[str, Any]) -> None:
        self._is_map = mode is DistributionMode.BROADCAST
        if self._is_map:
            roles = {"key": serializers["map_key"], "value": serializers["value"]}
            self._fields = [ValueFields.of(name, snapshot) for name, snapshot in roles.items()]
            fields = [field for one in self._fields for field in one.fields()]
        else:
            self._fields = [ValueFields.of("element", serializers["value"])]
            fields = [pa.field("position", pa.int64()), *self._fields[0].fields()]
        self.elements_per_row = len(self._fields)
        self.schema = table_schema(fields, {**about, "mode": mode, "serializers": serializers})

    def rows(self, first: int, elements: Sequence[bytes]) -> pa.RecordBatch:
        """``first`` is the position of the first element."""
        columns = [] if self._is_map else [pa.array(range(first, first + len(elements)), pa.int64())]
        for number, one in enumerate(self._fields):
            columns += one.write(elements[number :: self.elements_per_row])
        return pa.record_batch(columns, schema=self.schema)

    def elements(self, batch: pa.RecordBatch) -> list[Any]:
        parts = [one.read(batch) for one in self._fields]
        return [element for row in zip(*parts, strict=True) for element in row]


def write_operator_tables(
    states: Iterable[ListStateSnapshot], writer: SnapshotWriter, place: TablePlace, heartbeat: Callable[[], None]
) -> tuple[OperatorTable, ...]:
    """One table per state that has elements. States of one name, which had several types, are numbered."""
    found: list[OperatorTable] = []
    for number, state in enumerate(states):
        heartbeat()
        handle = None
        if state.elements:
            about = {**place.owner, "state": state.name, "kind": "operator state", "version": state.version}
            table = _ListTable(state.mode, state.serializers, about)
            file = ParquetFileWriter(table.schema)
            for first, elements in _cuts(state.elements, table.elements_per_row):
                file.write(table.rows(first, elements))
            handle = _stored(file, writer, place.path_of_list(state.name, state.mode, number))
        found.append(OperatorTable(state.name, state.mode, state.serializers, handle, state.version))
    return tuple(found)


def write_raw_table(
    encoded: bytes, keyed: bool, writer: SnapshotWriter, place: TablePlace, heartbeat: Callable[[], None]
) -> FileHandle:
    """Raw state, which comes as a file of parts."""
    heartbeat()
    kind, fields = ("raw keyed state", _RAW_KEYED) if keyed else ("raw operator state", _RAW_OPERATOR)
    file = ParquetFileWriter(table_schema(fields, {**place.owner, "kind": kind}))
    handle = FileHandle("", len(encoded), checksum(encoded), inline=encoded)
    with PartsFileReader(handle, InlineSnapshotReader()) as parts:
        numbers: list[int] = parts.info(list[int]) if keyed else list(range(len(parts)))
        for part, number in enumerate(numbers):
            columns = [pa.array([number], pa.int32()), pa.array(parts.read([part]), pa.binary())]
            file.write(pa.record_batch(columns, schema=pa.schema(fields)), (number, number) if keyed else (-1, -1))
    return _stored(file, writer, place.path_of_raw(keyed))


class PartsTableReader:
    """The elements of one table, of which only those that are asked for are read. It is to be closed."""

    def __init__(self, handle: FileHandle, reader: SnapshotReader, table: _ListTable | None, schema: pa.Schema) -> None:
        assert handle.table is not None
        self._row_groups = handle.table.row_groups
        self._per_row = 1 if table is None else table.elements_per_row
        self._elements = _raw_parts if table is None else table.elements
        self._starts = [0, *accumulate(one.rows * self._per_row for one in self._row_groups)]
        self._name = handle.path
        self._file: ParquetFileReader | None = ParquetFileReader(handle, reader, schema)

    @classmethod
    def of_state(cls, handle: FileHandle, state: OperatorTable, reader: SnapshotReader) -> PartsTableReader:
        table = _ListTable(state.mode, state.serializers, {})
        return cls(handle, reader, table, table.schema)

    @classmethod
    def of_raw(cls, handle: FileHandle, keyed: bool, reader: SnapshotReader) -> PartsTableReader:
        return cls(handle, reader, None, pa.schema(_RAW_KEYED if keyed else _RAW_OPERATOR))

    def __len__(self) -> int:
        return self._starts[-1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file = None

    def key_groups(self) -> list[int]:
        """Key groups of the parts of raw keyed state."""
        return [one.first_key_group for one in self._row_groups]

    def read(self, parts: Sequence[int]) -> list[bytes]:
        """The elements of these numbers, in the order in which they are asked for."""
        if self._file is None:
            raise ValueError(f"{self._name} is closed: what it holds can be read during a restore only")
        wanted = sorted({bisect_right(self._starts, part) - 1 for part in parts})
        found: dict[int, bytes] = {}
        for number, batch in zip(wanted, self._file.batches(wanted), strict=True):
            found.update(enumerate(self._elements(batch), self._starts[number]))
        return [found[part] for part in parts]


def _raw_parts(batch: pa.RecordBatch) -> list[Any]:
    return batch.column("data").to_pylist()  # type: ignore[no-any-return]  # Arrow


def _stored(file: ParquetFileWriter, writer: SnapshotWriter, path: str) -> FileHandle:
    data, table = file.finish()
    return msgspec.structs.replace(writer.write(path, data), table=table)


def _cuts(elements: Sequence[bytes], per_row: int) -> Iterator[tuple[int, Sequence[bytes]]]:
    """Elements of one row group each, with the number of the first."""
    first = size = 0
    for number in range(0, len(elements), per_row):
        if number > first and (number - first >= ROW_GROUP_ROWS * per_row or size >= ROW_GROUP_BYTES):
            yield first, elements[first:number]
            first, size = number, 0
        size += sum(map(len, elements[number : number + per_row]))
    yield first, elements[first:]
