"""Stored entries of one keyed state to rows of its table, and back to entries that hold the same.

=============  ==========================================================================================
kind           columns after ``key_group``, ``key`` and, where the state has namespaces, ``namespace``
=============  ==========================================================================================
value          ``value``
reducing       ``value``
aggregating    ``accumulator``
list           ``position``, ``value``: a row for each element, so that a list of any length is read in pieces
map            ``map_key``, ``map_value``: a row for each entry
timers         ``timestamp``, ``domain``
=============  ==========================================================================================

A state with a time to live has ``last_access`` too. Keys, namespaces and map keys of no declared type are text, and
beside it, as ``..._stored``, the bytes that count.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from holdfast.state.canonical.key_columns import readable
from holdfast.state.canonical.schema import ValueFields, table_schema, type_of, typed_field
from holdfast.state.cells import pack_elements, unpack_elements
from holdfast.state.handles import StateMeta
from holdfast.state.keyed_state import VOID
from holdfast.state.keys import KeyCodec
from holdfast.state.layout import HEAD_LENGTH, group_bytes, id_bytes, number_bytes, read_group, read_sized, sized
from holdfast.state.ttl_cells import STAMP
from holdfast.types.table_columns import Column, fixed_width

KEY_GROUP = "key_group"
Entry = tuple[bytes, bytes]

_VALUE_NAMES = {"aggregating": "accumulator", "map": "map_value"}
_NAMESPACE_TAG = b"n"
_SIGN = np.uint64(1 << 63)
#: The second part of a timer state's name.
_DOMAIN = 1


class KeyFields:
    """The columns of a key, a namespace or a map key."""

    def __init__(self, name: str, snapshot: dict[str, Any]) -> None:
        self._name = name
        self._type = type_of(snapshot)
        self._codec: KeyCodec | None = None
        if not self._type.declared:
            self._codec = KeyCodec.for_type(self._type)
        self._column: Column = self._type.key_column()

    def fields(self) -> list[pa.Field]:
        if self._codec is None:
            return [typed_field(self._name, self._type, self._column.arrow_type)]
        return [pa.field(self._name, pa.string()), pa.field(f"{self._name}_stored", pa.binary())]

    def write(self, keys: Sequence[bytes | None]) -> list[pa.Array]:
        array = self._column.write(keys)
        return [array] if self._codec is None else [readable(self._codec, keys), array]

    def read(self, batch: pa.RecordBatch) -> list[Any]:
        return self._column.read(batch.column(self._name if self._codec is None else f"{self._name}_stored"))


class KeyedTable:
    """The table of one state. It numbers the elements of lists: entries come to one object, in their order."""

    def __init__(self, meta: StateMeta, key_serializer: dict[str, Any], owner: dict[str, Any] | None = None) -> None:
        self._meta = meta
        self._id = id_bytes(meta.state_id)
        serializers = meta.serializers
        self._key = KeyFields("key", key_serializer)
        self._namespace = KeyFields("namespace", serializers["namespace"]) if "namespace" in serializers else None
        self._map_key = KeyFields("map_key", serializers["map_key"]) if meta.kind == "map" else None
        self._value: ValueFields | None = None
        if meta.kind != "timers":
            self._value = ValueFields.of(_VALUE_NAMES.get(meta.kind, "value"), serializers["value"])
        self._list_head = b""
        self._list_length = 0
        about = {"state": meta.name, "kind": meta.kind, "ttl": meta.ttl, "version": meta.version}
        about["serializers"] = serializers
        self.schema = table_schema(self._fields(), {**(owner or {}), **about, "key_serializer": key_serializer})

    def _fields(self) -> list[pa.Field]:
        fields = [pa.field(KEY_GROUP, pa.int32()), *self._key.fields()]
        if self._namespace is not None:
            fields += self._namespace.fields()
        if self._meta.kind == "timers":
            return [*fields, pa.field("timestamp", pa.int64()), pa.field("domain", pa.string())]
        if self._map_key is not None:
            fields += self._map_key.fields()
        if self._meta.kind == "list":
            fields.append(pa.field("position", pa.int64()))
        assert self._value is not None
        fields += self._value.fields()
        return [*fields, pa.field("last_access", pa.int64())] if self._meta.ttl else fields

    # -- entries to rows

    def rows(self, entries: Sequence[Entry]) -> pa.RecordBatch:
        """The rows of some entries of the state, which come in key order."""
        if self._meta.kind == "list":
            return self._list_rows(entries)
        keys, namespaces, suffixes = _split([stored for stored, _ in entries])
        columns = self._heads([read_group(stored) for stored, _ in entries], keys, namespaces)
        if self._meta.kind == "timers":
            domain = self._meta.name.split("/")[_DOMAIN]
            columns += [_times(suffixes), pa.array([domain] * len(entries), pa.string())]
            return pa.record_batch(columns, schema=self.schema)
        values: Sequence[bytes | None] = [value for _, value in entries]
        stamps: list[pa.Array] = []
        if self._meta.ttl:
            stamps.append(_times([value[:STAMP] for _, value in entries]))
            values = [value[STAMP:] for _, value in entries]
        if self._map_key is not None:
            columns += self._map_key.write(suffixes)
            # Empty bytes are a None, of any type.
            values = [value or None for value in values]
        assert self._value is not None
        return pa.record_batch([*columns, *self._value.write(values), *stamps], schema=self.schema)

    def _list_rows(self, entries: Sequence[Entry]) -> pa.RecordBatch:
        ttl, start = self._meta.ttl, STAMP if self._meta.ttl else 0
        keys, namespaces, _ = _split([stored for stored, _ in entries])
        chunks = [unpack_elements(value[start:]) for _, value in entries]
        positions: list[int] = []
        for (stored, _), chunk in zip(entries, chunks, strict=True):
            head = stored[:-8]
            if head != self._list_head:
                self._list_head, self._list_length = head, 0
            positions += range(self._list_length, self._list_length + len(chunk))
            self._list_length += len(chunk)
        owners = [number for number, chunk in enumerate(chunks) for _ in chunk]
        found = [element for chunk in chunks for element in chunk]
        groups = [read_group(stored) for stored, _ in entries]
        columns = self._heads(
            [groups[number] for number in owners],
            [keys[number] for number in owners],
            [namespaces[number] for number in owners],
        )
        columns.append(pa.array(positions, pa.int64()))
        assert self._value is not None
        columns += self._value.write([element[STAMP:] for element in found] if ttl else found)
        if ttl:
            columns.append(_times([element[:STAMP] for element in found]))
        return pa.record_batch(columns, schema=self.schema)

    def _heads(
        self, groups: Sequence[int], keys: Sequence[bytes], namespaces: Sequence[bytes | None]
    ) -> list[pa.Array]:
        columns = [pa.array(groups, pa.int32()), *self._key.write(keys)]
        if self._namespace is not None:
            columns += self._namespace.write(namespaces)
        return columns

    # -- rows to entries

    def entries(self, batch: pa.RecordBatch) -> list[Entry]:
        """The entries that rows of this table stand for, in key order."""
        heads = self._read_heads(batch)
        if self._meta.kind == "timers":
            return [(head + time, b"") for head, time in zip(heads, _time_bytes(batch, "timestamp"), strict=True)]
        assert self._value is not None
        values = self._value.read(batch)
        stamps = _time_bytes(batch, "last_access") if self._meta.ttl else None
        if self._meta.kind == "list":
            return _chunks(heads, batch.column("position").to_pylist(), values, stamps)
        if self._map_key is not None:
            heads = [head + key for head, key in zip(heads, self._map_key.read(batch), strict=True)]
        stored = [value or b"" for value in values]
        if stamps is not None:
            stored = [stamp + value for stamp, value in zip(stamps, stored, strict=True)]
        return list(zip(heads, stored, strict=True))

    def _read_heads(self, batch: pa.RecordBatch) -> list[bytes]:
        own, starts = self._id, {}
        groups = batch.column(KEY_GROUP).to_pylist()
        for group in set(groups):
            starts[group] = group_bytes(group) + own
        keys = map(sized, self._key.read(batch))
        if self._namespace is None:
            return [starts[group] + key + VOID for group, key in zip(groups, keys, strict=True)]
        namespaces = [VOID if one is None else sized(_NAMESPACE_TAG + one) for one in self._namespace.read(batch)]
        return [starts[group] + key + one for group, key, one in zip(groups, keys, namespaces, strict=True)]


def _split(stored_keys: Sequence[bytes]) -> tuple[list[bytes], list[bytes | None], list[bytes]]:
    """The keys, namespaces (None: the default one) and suffixes of stored keys."""
    keys: list[bytes] = []
    namespaces: list[bytes | None] = []
    suffixes: list[bytes] = []
    for stored in stored_keys:
        key, namespace_at = read_sized(stored, HEAD_LENGTH)
        namespace, suffix_at = read_sized(stored, namespace_at)
        keys.append(key)
        namespaces.append(namespace[len(_NAMESPACE_TAG) :] if namespace else None)
        suffixes.append(stored[suffix_at:])
    return keys, namespaces, suffixes


def _chunks(heads: list[bytes], positions: list[int], values: list[Any], stamps: list[bytes] | None) -> list[Entry]:
    """Neighbouring elements of one list as one chunk, whose number is the position of the first."""
    found: list[Entry] = []
    for head, run in groupby(range(len(heads)), heads.__getitem__):
        numbers = list(run)
        first, end = numbers[0], numbers[-1] + 1
        stored = head + number_bytes(positions[first])
        if stamps is None:
            found.append((stored, pack_elements(values[first:end])))
        else:
            timed = [stamp + value for stamp, value in zip(stamps[first:end], values[first:end], strict=True)]
            found.append((stored, max(stamps[first:end]) + pack_elements(timed)))
    return found


def _times(data: Sequence[bytes]) -> pa.Array:
    """Stored times as signed milliseconds."""
    numbers = np.frombuffer(b"".join(data), ">u8").astype("u8") ^ _SIGN
    return pa.array(numbers.view("i8"), pa.int64())


def _time_bytes(batch: pa.RecordBatch, name: str) -> list[bytes]:
    numbers = batch.column(name).to_numpy().view("u8") ^ _SIGN
    return fixed_width(numbers.astype(">u8").tobytes(), 8)
