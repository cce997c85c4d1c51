"""Avro schemas as types: records are rows with names, and what a schema says of defaults and aliases stays with them.

A union of one type and null is that type: every field may be None. Other unions, and records that contain themselves,
have no counterpart. Values of an enum are text, those of a fixed are bytes.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from holdfast.errors import ProgramError
from holdfast.types.information import (
    BasicType,
    BasicTypeInfo,
    DecimalTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    RowTypeInfo,
    TypeInformation,
)

_EPOCH = dt.datetime(1970, 1, 1)
_PRIMITIVE = {
    "boolean": BasicType.BOOLEAN,
    "int": BasicType.INT,
    "long": BasicType.LONG,
    "float": BasicType.FLOAT,
    "double": BasicType.DOUBLE,
    "bytes": BasicType.BYTES,
    "string": BasicType.STRING,
    "fixed": BasicType.BYTES,
    "enum": BasicType.STRING,
}
_LOGICAL = {
    "date": BasicType.SQL_DATE,
    "time-millis": BasicType.SQL_TIME,
    "time-micros": BasicType.SQL_TIME,
    "timestamp-millis": BasicType.TIMESTAMP_LTZ,
    "timestamp-micros": BasicType.TIMESTAMP_LTZ,
    "local-timestamp-millis": BasicType.SQL_TIMESTAMP,
    "local-timestamp-micros": BasicType.SQL_TIMESTAMP,
}


def avro_type(schema: Mapping[str, Any] | str) -> TypeInformation:
    """The type of a schema, which is JSON text, or what that says."""
    if isinstance(schema, str):
        try:
            schema = json.loads(schema)
        except ValueError as error:
            raise ProgramError(f"The Avro schema {schema!r} is not JSON: {error}.") from error
    return _Schemas().type_of(schema)[0]


#: From a default in JSON to the value that it stands for.
FromJson = Callable[[Any], Any]


class _Schemas:
    """Reads one schema, with the named types that it defines."""

    def __init__(self) -> None:
        self._named: dict[str, tuple[TypeInformation, FromJson] | None] = {}

    def type_of(self, schema: Any, namespace: str = "") -> tuple[TypeInformation, FromJson]:
        if isinstance(schema, list):
            return self._union(schema, namespace)
        if isinstance(schema, str):
            return self._of_name(schema, namespace)
        if not isinstance(schema, Mapping) or "type" not in schema:
            raise ProgramError(f"{schema!r} is not an Avro schema; expected the name of a type, or an object with one.")
        kind = schema["type"]
        if isinstance(kind, (list, Mapping)):
            return self.type_of(kind, namespace)
        if kind == "array":
            element, read = self.type_of(schema["items"], namespace)
            return ListTypeInfo(element), lambda found: [_optional(read, one) for one in found]
        if kind == "map":
            value, read_value = self.type_of(schema["values"], namespace)
            keys = BasicTypeInfo(BasicType.STRING)
            return MapTypeInfo(keys, value), lambda found: {k: _optional(read_value, v) for k, v in found.items()}
        if kind in ("record", "error"):
            return self._record(schema, namespace)
        found = _logical(schema) or self._of_name(kind, namespace)
        if kind in ("enum", "fixed"):
            self._named[_full_name(schema, namespace)] = found
        return found

    def _of_name(self, name: str, namespace: str) -> tuple[TypeInformation, FromJson]:
        if name in _PRIMITIVE:
            read = _bytes_of if name in ("bytes", "fixed") else float if name in ("float", "double") else _same
            return BasicTypeInfo(_PRIMITIVE[name]), read
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        if full not in self._named:
            raise ProgramError(f"The Avro schema has no type '{name}' before it is used, and it is no type of Avro's.")
        known = self._named[full]
        if known is None:
            raise ProgramError(f"The Avro record '{full}' contains itself, which rows cannot.")
        return known

    def _union(self, schema: list[Any], namespace: str) -> tuple[TypeInformation, FromJson]:
        present = [one for one in schema if one != "null"]
        if len(present) != 1:
            raise ProgramError(
                f"The Avro union {json.dumps(schema)} has no type here; expected one type, or one type and null."
            )
        return self.type_of(present[0], namespace)

    def _record(self, schema: Mapping[str, Any], namespace: str) -> tuple[TypeInformation, FromJson]:
        full = _full_name(schema, namespace)
        inner = full.rpartition(".")[0]
        self._named[full] = None
        names: list[str] = []
        types: list[TypeInformation] = []
        readers: list[FromJson] = []
        defaults: dict[str, Any] = {}
        for field in schema["fields"]:
            type_info, read = self.type_of(field["type"], inner)
            names.append(field["name"])
            types.append(type_info)
            readers.append(read)
            if "default" in field:
                defaults[field["name"]] = _optional(read, field["default"])
        aliases = {field["name"]: tuple(field["aliases"]) for field in schema["fields"] if field.get("aliases")}
        row = RowTypeInfo(tuple(types), tuple(names), defaults=defaults, aliases=aliases)

        def values_of(found: Mapping[str, Any]) -> tuple[Any, ...]:
            given = zip(names, readers, strict=True)
            return tuple(_optional(read, found[name]) if name in found else defaults[name] for name, read in given)

        self._named[full] = row, values_of
        return row, values_of


def _logical(schema: Mapping[str, Any]) -> tuple[TypeInformation, FromJson] | None:
    """None where the logical type is none that is known: then it is to be passed over."""
    name = schema.get("logicalType")
    if name == "decimal":
        precision, scale = schema["precision"], schema.get("scale", 0)
        return DecimalTypeInfo(precision, scale), lambda text: Decimal(
            int.from_bytes(_bytes_of(text), "big", signed=True)
        ).scaleb(-scale)
    if name not in _LOGICAL:
        return None
    unit = dt.timedelta(days=1) if name == "date" else dt.timedelta(microseconds=1 if "micros" in name else 1000)
    moment: FromJson = lambda count: _EPOCH + count * unit  # noqa: E731 - a name for one of several
    if name == "date":
        return BasicTypeInfo(_LOGICAL[name]), lambda count: moment(count).date()
    if name.startswith("time-"):
        return BasicTypeInfo(_LOGICAL[name]), lambda count: moment(count).time()
    return BasicTypeInfo(_LOGICAL[name]), moment


def _full_name(schema: Mapping[str, Any], namespace: str) -> str:
    name, own = str(schema["name"]), schema.get("namespace", namespace)
    return name if "." in name or not own else f"{own}.{name}"


def _same(found: Any) -> Any:
    return found


def _optional(read: FromJson, found: Any) -> Any:
    return None if found is None else read(found)


def _bytes_of(text: str) -> bytes:
    return text.encode("latin-1")
