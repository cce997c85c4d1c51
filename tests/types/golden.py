"""All that is stored, hashed or asked of types, as text: written once by the code of a commit, compared ever after.

python -m tests.types.golden > tests/fixtures/types/<commit>.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from holdfast.errors import HoldfastError
from holdfast.runtime.partitioners import _FORMS
from holdfast.state.canonical.keyed_table import KeyedTable, KeyFields
from holdfast.state.canonical.schema import ValueFields
from holdfast.state.cells import Cells
from holdfast.state.columnar_values import fits_columns
from holdfast.state.handles import StateMeta
from holdfast.state.keys import KeyCodec
from holdfast.state.serializers import Serializer, compatibility, migrate, serializer_for, serializer_from_snapshot
from holdfast.types.arrow import row_reader, row_writer, schema_of
from holdfast.types.avro import avro_type
from holdfast.types.ddl import parse_ddl
from holdfast.types.resolve import resolve
from holdfast.types.type_changes import keeps_hash, key_change, loses_nothing
from holdfast.types.typeinfo import BasicType, BasicTypeInfo, TypeInformation, Types
from tests.types.samples import TYPES, TypeSample

#: Types that some of the samples may become, and others of which no sample becomes any.
OTHERS: dict[str, TypeInformation] = {
    "DECIMAL wider": Types.DECIMAL(12, 2),
    "DECIMAL finer": Types.DECIMAL(14, 4),
    "LIST narrower": Types.LIST(Types.INT()),
    "PRIMITIVE_ARRAY narrower": Types.PRIMITIVE_ARRAY(Types.FLOAT()),
    "MAP wider": Types.MAP(Types.STRING(), Types.DOUBLE()),
    "TUPLE narrower": Types.TUPLE([Types.INT(), Types.CHAR()]),
    "TUPLE longer": Types.TUPLE([Types.LONG(), Types.STRING(), Types.LONG()]),
    "ROW wider": Types.ROW([Types.LONG(), Types.STRING()]),
    "ROW_NAMED reordered": Types.ROW_NAMED(["b", "a"], [Types.STRING(), Types.LONG()]),
    "ROW_NAMED longer": Types.ROW_NAMED(["a", "b", "c"], [Types.INT(), Types.STRING(), Types.BOOLEAN()]),
    "ROW_NAMED shorter": Types.ROW_NAMED(["b"], [Types.STRING()]),
    "ROW_NAMED of the tuple": Types.ROW_NAMED(["number", "at"], [Types.INT(), Types.TIMESTAMP_LTZ()]),
    "AVRO with a default": avro_type(
        {
            "type": "record",
            "name": "R",
            "fields": [
                {"name": "first", "aliases": ["a"], "type": "long"},
                {"name": "day", "type": {"type": "int", "logicalType": "date"}, "default": 3},
                {"name": "cost", "type": TYPES["DECIMAL"].avro[0], "default": "\u0001\u0000"},
            ],
        }
    ),
}


def golden() -> dict[str, Any]:
    types = {name: sample.type_info for name, sample in TYPES.items()} | OTHERS
    return {
        "types": {name: _described(type_info) for name, type_info in types.items()},
        "values": {name: _values(sample) for name, sample in TYPES.items()},
        "keys": {name: _keys(sample) for name, sample in TYPES.items() if keys_of(sample)},
        "no keys": {name: _refused(sample) for name, sample in TYPES.items() if not keys_of(sample)},
        "changes": {name: _changes(type_info, types) for name, type_info in types.items()},
        "names": {name: _names(sample) for name, sample in TYPES.items()},
        "basic": {basic.name: _described(BasicTypeInfo(basic)) for basic in BasicType},
        "tables": {kind: _table(kind) for kind in ("value", "list", "map", "timers")},
    }


def keys_of(sample: TypeSample) -> Sequence[Any]:
    return sample.values if sample.keys is None else sample.values[: sample.keys]


def _described(type_info: TypeInformation) -> dict[str, Any]:
    snapshot = serializer_for(type_info).snapshot()
    return {
        "text": [type_info.describe()] * 2,
        "immutable": type_info.immutable,
        "pickled": type_info.pickled,
        "bare": type_info.bare().to_json(),
        "arrow": [str(type_info.arrow_type()), _fields(schema_of(type_info))],
        "snapshot": snapshot,
        "read again": serializer_from_snapshot(snapshot).snapshot(),
        "columns of a savepoint": _fields(ValueFields.of("value", snapshot).fields()),
        "plain in caches": str(Cells(serializer_for(type_info)).plain),
        "kept as columns": fits_columns(type_info),
    }


def _fields(fields: Sequence[pa.Field]) -> list[str]:
    return [f"{field} {field.metadata}" for field in fields]


def _values(sample: TypeSample) -> dict[str, Any]:
    serializer, values = serializer_for(sample.type_info), list(sample.values)
    batch = row_writer(sample.type_info)(values)
    stored = [serializer.encode(value) for value in values]
    fields = ValueFields.of("value", serializer.snapshot())
    return {
        "stored": [data.hex() for data in stored],
        "together": [data.hex() for data in serializer.encode_many(values * 20)][: len(values)],
        "decoded": [repr(serializer.decode(data)) for data in stored],
        "arrow": [repr(column.to_pylist()) for column in batch.columns],
        "rows": repr(row_reader(sample.type_info)(batch)),
        "savepoint": [repr(column.to_pylist()) for column in fields.write([*stored, None])],
        "mismatch": _error(lambda: serializer.encode(_Foreign())),
        "mismatch in Arrow": _error(lambda: row_writer(sample.type_info)([_Foreign()])),
    }


class _Foreign:
    """An object of no type's class, which cannot be pickled."""

    def __repr__(self) -> str:
        return "<foreign>"

    def __reduce__(self) -> Any:
        raise TypeError("not to be pickled")


def _keys(sample: TypeSample) -> dict[str, Any]:
    codec, keys = KeyCodec.for_type(sample.type_info), list(keys_of(sample))
    encoded = [codec.encode(key) for key in keys]
    fields = KeyFields("key", codec.snapshot())
    found = {
        "encoded": [data.hex() for data in encoded],
        "hash": [codec.hash(key) for key in keys],
        "hash many": codec.hash_many(keys).tolist(),
        "identity": [repr(codec.identity(key)) for key in keys],
        "trivial": codec.trivial_identity,
        "normalised": [repr(codec.normalise(key)) for key in keys],
        "decoded": [repr(codec.decode(data)) for data in encoded],
        "columns of a savepoint": _fields(fields.fields()),
        "savepoint": [repr(column.to_pylist()) for column in fields.write(encoded)],
        "travels as": sorted(_FORMS[cls] for cls in codec.normal_classes),
        "rejected": _error(lambda: codec.encode(_Foreign())),
    }
    if not sample.type_info.pickled:
        column = pa.concat_arrays([pa.array([], sample.type_info.arrow_type()), _column(sample, keys)])
        found["hash of columns"] = codec.hash_array(column).tolist()
        found["same column"] = repr(codec.same_column(column).to_pylist())
    return found


def _column(sample: TypeSample, keys: list[Any]) -> pa.Array:
    batch = row_writer(sample.type_info)(keys)
    return batch.column(0) if batch.schema.names == ["value"] else batch.to_struct_array()


def _refused(sample: TypeSample) -> str:
    return _error(lambda: KeyCodec.for_type(sample.type_info))


def _changes(old: TypeInformation, types: dict[str, TypeInformation]) -> dict[str, Any]:
    """What each type may become, and what comes of the first values."""
    found: dict[str, Any] = {}
    for name, new in types.items():
        writer, reader = serializer_for(old), serializer_for(new)
        fate = compatibility(writer.snapshot(), reader).value
        if fate == "INCOMPATIBLE":
            continue
        values = next((sample.values for sample in TYPES.values() if sample.type_info is old), ())
        found[name] = {
            "fate": fate,
            "keeps apart": loses_nothing(old, new),
            "keys follow": key_change(old, new) is not None,
            "keeps hash": keeps_hash(old, new),
            "migrated": [_migrated(writer, reader, value) for value in values],
        }
    return found


def _migrated(old: Serializer, new: Serializer, value: Any) -> str:
    return _error(lambda: migrate(old, new, old.encode(value)).hex())


def _names(sample: TypeSample) -> dict[str, Any]:
    defaulted = ({"type": "record", "name": "D", "fields": [{"name": "f", "type": one}]} for one in sample.avro)
    return {
        "ddl": [parse_ddl(text).to_json() for text in sample.ddl],
        "python": [resolve(one).to_json() for one in sample.python],
        "avro": [avro_type(one).to_json() for one in sample.avro],
        "avro fields": [resolve(one).to_json() for one in defaulted],
        "is itself": [resolve(one) == sample.type_info for one in [*sample.ddl, *sample.python]],
    }


def _table(kind: str) -> str:
    serializers = {"value": serializer_for(TYPES["nested"].type_info).snapshot()}
    serializers["namespace"] = KeyCodec.for_type(TYPES["TUPLE"].type_info).snapshot()
    if kind == "map":
        serializers["map_key"] = KeyCodec.for_type(TYPES["DATACLASS frozen"].type_info).snapshot()
    name = "timers/event" if kind == "timers" else "name"
    meta = StateMeta(name=name, kind=kind, state_id=3, serializers=serializers, ttl=kind == "value")
    return repr(KeyedTable(meta, KeyCodec.for_type(TYPES["PICKLED"].type_info).snapshot()).schema.to_string())


def _error(call: Callable[[], Any]) -> str:
    try:
        return str(call())
    except (HoldfastError, ValueError, TypeError) as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    json.dump(golden(), sys.stdout, indent=1, sort_keys=True, ensure_ascii=True)
    sys.stdout.write("\n")
