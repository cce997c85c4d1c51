"""From whatever a program calls a type to type information."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from typing import Any

from holdfast.errors import ProgramError
from holdfast.types.avro import avro_type
from holdfast.types.contract import TypeInformation
from holdfast.types.ddl import parse_ddl
from holdfast.types.registry import CLASS_KINDS, not_loaded, python_type
from holdfast.types.typeinfo import Types


def resolve(type_like: Any) -> TypeInformation:
    """The type information of a Types value, a DDL text, a Spark DataType, an Avro schema, a Python type, a dataclass,
    NamedTuple or msgspec struct; of None: pickled.
    """
    return _resolve(type_like, ())


def _resolve(type_like: Any, inside: tuple[type, ...]) -> TypeInformation:
    if type_like is None:
        return Types.PICKLED_BYTE_ARRAY()
    if isinstance(type_like, TypeInformation):
        return type_like
    if isinstance(type_like, str):
        return avro_type(type_like) if type_like.lstrip().startswith("{") else parse_ddl(type_like)
    if _is_spark_type(type_like):
        return _from_spark(type_like.jsonValue())
    if isinstance(type_like, Mapping):
        return avro_type(type_like)
    origin = typing.get_origin(type_like)
    if origin is not None:
        return _from_generic(type_like, origin, inside)
    known = _known(type_like)
    if known is not None:
        return known
    kind = next((one for one in CLASS_KINDS if one.takes(type_like)), None)
    if kind is not None:
        return _from_class(kind, type_like, inside)
    raise _unknown(type_like)


def _known(type_like: Any) -> TypeInformation | None:
    """The type that has this among its names; what cannot be hashed is none."""
    try:
        hash(type_like)
    except TypeError:
        return None
    return python_type(type_like)


def _from_generic(type_like: Any, origin: Any, inside: tuple[type, ...]) -> TypeInformation:
    arguments = typing.get_args(type_like)
    if origin is typing.Annotated:
        declared = [extra for extra in arguments[1:] if isinstance(extra, (TypeInformation, str))]
        return _resolve(declared[0] if declared else arguments[0], inside)
    if origin in (typing.Union, types.UnionType):
        present = [argument for argument in arguments if argument is not type(None)]
        if len(present) == 1:
            return _resolve(present[0], inside)
    if origin is list and len(arguments) == 1:
        return Types.LIST(_resolve(arguments[0], inside))
    if origin is dict and len(arguments) == 2:
        return Types.MAP(_resolve(arguments[0], inside), _resolve(arguments[1], inside))
    if origin is tuple and arguments and arguments[-1] is not Ellipsis:
        return Types.TUPLE([_resolve(argument, inside) for argument in arguments])
    raise _unknown(type_like)


def _from_class(kind: type[TypeInformation], cls: type, inside: tuple[type, ...]) -> TypeInformation:
    if cls in inside:
        raise ProgramError(f"{cls.__qualname__} contains itself; declare that field as typing.Any to pickle it")
    return kind.of(cls, lambda hint: _resolve(hint, (*inside, cls)))


def _is_spark_type(value: Any) -> bool:
    """Spark's DataType, told by its methods: this package does not import pyspark."""
    methods = ("simpleString", "jsonValue")
    return not isinstance(value, type) and all(callable(getattr(value, name, None)) for name in methods)


def _from_spark(described: Any) -> TypeInformation:
    """From the JSON value of a Spark type, whose field names need no quoting."""
    if isinstance(described, str):
        return parse_ddl(described)
    kind = described["type"]
    if kind == "array":
        return Types.LIST(_from_spark(described["elementType"]))
    if kind == "map":
        return Types.MAP(_from_spark(described["keyType"]), _from_spark(described["valueType"]))
    if kind == "struct":
        entries = described["fields"]
        return Types.ROW_NAMED([entry["name"] for entry in entries], [_from_spark(entry["type"]) for entry in entries])
    raise ProgramError(f"Spark's type {described!r} has no counterpart here; cast the column to another type first")


def _unknown(type_like: Any) -> ProgramError:
    return ProgramError(
        f"{type_like!r} is not a type that Holdfast knows. Use Types.*, a Spark DDL text such as 'a INT, b STRING', "
        f"a Spark DataType, an Avro schema, int, float, str, bytes, bool, date, time, datetime, Decimal, list[T], "
        f"dict[K, V], tuple[A, B], a dataclass, NamedTuple or msgspec.Struct, or None to pickle"
        + "".join(f". {reason}" for reason in not_loaded())
    )
