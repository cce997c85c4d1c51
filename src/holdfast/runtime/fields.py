"""Fields of functions on their way to the next epoch.

Python workers are not tied to partitions, and a function lives for an attempt: what it holds in ``self`` is pickled at the end of each epoch, and a
process that no longer has the live object takes it up again. State handles travel as their names and are bound anew. A field
that cannot be pickled (a connection) stays behind: ``open()`` makes it again, and the fields that did travel are laid over its result.
"""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass
from typing import Any

import cloudpickle

from holdfast.runtime.context import RuntimeContext
from holdfast.runtime.environment import OperatorEnvironment
from holdfast.state.operator_state import OperatorStateHandle
from holdfast.state.states import State

_KEYED, _OPERATOR, _CONTEXT = "keyed", "operator", "context"


class _FieldPickler(cloudpickle.Pickler):  # type: ignore[misc]
    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, State):
            return _KEYED, obj.descriptor
        if isinstance(obj, OperatorStateHandle):
            return _OPERATOR, obj.mode.value, obj.descriptor
        if isinstance(obj, RuntimeContext):
            return (_CONTEXT,)
        return None


class _FieldUnpickler(pickle.Unpickler):
    def __init__(self, data: bytes, environment: OperatorEnvironment) -> None:
        super().__init__(io.BytesIO(data))
        self._environment = environment

    def persistent_load(self, pid: Any) -> Any:
        kind = pid[0]
        if kind == _KEYED:
            return self._environment.keyed().state(pid[1])
        if kind == _OPERATOR:
            return self._environment.operator_state.handle(pid[1], pid[2])
        return RuntimeContext(self._environment)


@dataclass(frozen=True, slots=True)
class PackedFields:
    """Pickled fields, and the names of those that could not be."""

    data: bytes
    left_behind: tuple[str, ...] = ()


def pack_fields(fields: dict[str, Any]) -> PackedFields:
    try:
        return PackedFields(_dump(fields))
    except Exception:
        # One field at a time, to find out which one it is.
        travelling, left_behind = {}, []
        for name, value in fields.items():
            try:
                _dump(value)
                travelling[name] = value
            except Exception:
                left_behind.append(name)
        return PackedFields(_dump(travelling), tuple(left_behind))


def unpack_fields(packed: PackedFields, environment: OperatorEnvironment) -> dict[str, Any]:
    fields: dict[str, Any] = _FieldUnpickler(packed.data, environment).load()
    return fields


def _dump(value: Any) -> bytes:
    buffer = io.BytesIO()
    _FieldPickler(buffer).dump(value)
    return buffer.getvalue()
