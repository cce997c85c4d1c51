"""What ``key_by``, ``partition_custom`` and ``project`` are given: columns, functions, or objects with a method of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.datastream.functions import KeySelector
from holdfast.errors import ProgramError
from holdfast.graph.stream_graph import KeyBy
from holdfast.runtime.contracts import has_operator_state
from holdfast.runtime.custom_partitioner import Custom
from holdfast.types.resolve import resolve
from holdfast.types.typeinfo import FieldsTypeInfo, TypeInformation, Types


def key_by_of(row_type: TypeInformation, key_selector: Any, key_type: Any) -> KeyBy:
    """How rows of ``row_type`` are keyed."""
    if isinstance(key_selector, str) or (
        isinstance(key_selector, Sequence) and key_selector and all(isinstance(c, str) for c in key_selector)
    ):
        columns = (key_selector,) if isinstance(key_selector, str) else tuple(key_selector)
        return KeyBy(_column_key_type(row_type, columns), columns)
    if not (isinstance(key_selector, KeySelector) or callable(key_selector)):
        raise ProgramError(f"key_by() takes a function, a KeySelector or column names; got {key_selector!r}.")
    if has_operator_state(key_selector):
        raise ProgramError(
            f"The key selector {type(key_selector).__name__} has operator state. The key of a row must not depend on "
            "what came before it: compute it in a map() before key_by() and select it here."
        )
    return KeyBy(resolve(key_type), selector=key_selector)


def custom_partitioner(partitioner: Any, key_selector: Any) -> Custom:
    """Rows go where ``partitioner`` sends their key."""
    for what, given, method in (("partitioner", partitioner, "partition"), ("key selector", key_selector, "get_key")):
        if not callable(given) and not callable(getattr(given, method, None)):
            raise TypeError(f"partition_custom(): the {what} must be a function or have {method}(); got {given!r}.")
        if has_operator_state(given):
            raise ProgramError(
                f"partition_custom(): the {what} {type(given).__name__} has operator state, which is not kept for it."
            )
    return Custom(partitioner, key_selector)


def field_types(row_type: TypeInformation, what: str) -> list[TypeInformation]:
    """The types of the fields of rows."""
    if isinstance(row_type, FieldsTypeInfo):
        return list(row_type.field_types)
    raise ProgramError(
        f"{what} needs a stream of tuples or rows with a declared type; this one is {row_type.describe()}."
    )


def _column_key_type(row_type: TypeInformation, columns: tuple[str, ...]) -> TypeInformation:
    if not isinstance(row_type, FieldsTypeInfo):
        raise ProgramError(
            f"key_by({columns!r}) needs rows with named fields; this stream is {row_type.describe()}. Give a "
            "function instead."
        )
    types = dict(zip(row_type.field_names, row_type.field_types, strict=True))
    unknown = [c for c in columns if c not in types]
    if unknown:
        raise ProgramError(f"key_by(): the rows have no field {unknown[0]!r}; they have {', '.join(types)}.")
    return types[columns[0]] if len(columns) == 1 else Types.TUPLE([types[c] for c in columns])
