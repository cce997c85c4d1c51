"""Avro schemas as types: records are rows with names, and what a schema says of defaults and aliases stays with them.

A union of one type and null is that type: every field may be None. Other unions, and records that contain themselves,
have no counterpart. Values of an enum are text, those of a fixed are bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from holdfast.errors import ProgramError
from holdfast.types.avro_defaults import optional, same
from holdfast.types.information import BasicType, BasicTypeInfo, ListTypeInfo, MapTypeInfo, RowTypeInfo, TypeInformation
from holdfast.types.registry import FromJson, avro_logical_type, avro_name


def avro_type(schema: Mapping[str, Any] | str) -> TypeInformation:
    """The type of a schema, which is JSON text, or what that says."""
    if isinstance(schema, str):
        try:
            schema = json.loads(schema)
        except ValueError as error:
            raise ProgramError(f"The Avro schema {schema!r} is not JSON: {error}.") from error
    return _Schemas().type_of(schema)[0]


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
            return ListTypeInfo(element), lambda found: [optional(read, one) for one in found]
        if kind == "map":
            value, read_value = self.type_of(schema["values"], namespace)
            keys = BasicTypeInfo(BasicType.STRING)
            return MapTypeInfo(keys, value), lambda found: {k: optional(read_value, v) for k, v in found.items()}
        if kind in ("record", "error"):
            return self._record(schema, namespace)
        found = self._logical(schema, namespace) or self._of_name(kind, namespace)
        if kind in ("enum", "fixed"):
            self._named[_full_name(schema, namespace)] = found
        return found

    def _of_name(self, name: str, namespace: str) -> tuple[TypeInformation, FromJson]:
        plain = avro_name(name)
        if plain is not None:
            return plain({}, same)
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        if full not in self._named:
            raise ProgramError(f"The Avro schema has no type '{name}' before it is used, and it is no type of Avro's.")
        known = self._named[full]
        if known is None:
            raise ProgramError(f"The Avro record '{full}' contains itself, which rows cannot.")
        return known

    def _logical(self, schema: Mapping[str, Any], namespace: str) -> tuple[TypeInformation, FromJson] | None:
        """None where the logical type is none that is known: then it is to be passed over."""
        name = schema.get("logicalType")
        logical = None if name is None else avro_logical_type(name)
        return None if logical is None else logical(schema, self._of_name(schema["type"], namespace)[1])

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
                defaults[field["name"]] = optional(read, field["default"])
        aliases = {field["name"]: tuple(field["aliases"]) for field in schema["fields"] if field.get("aliases")}
        row = RowTypeInfo(tuple(types), tuple(names), defaults=defaults, aliases=aliases)

        def values_of(found: Mapping[str, Any]) -> tuple[Any, ...]:
            given = zip(names, readers, strict=True)
            return tuple(optional(read, found[name]) if name in found else defaults[name] for name, read in given)

        self._named[full] = row, values_of
        return row, values_of


def _full_name(schema: Mapping[str, Any], namespace: str) -> str:
    name, own = str(schema["name"]), schema.get("namespace", namespace)
    return name if "." in name or not own else f"{own}.{name}"
