"""Fields of functions on their way to the next epoch.

Python workers are not tied to partitions, and a function lives for an attempt: what it holds in ``self`` is pickled
at the end of each epoch, and a process that no longer has the live object takes it up again. State handles travel as
their names and are bound anew. A field that cannot be pickled (a connection) stays behind: ``open()`` makes it again,
and the fields that did travel are laid over its result.
"""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass
from typing import Any

import cloudpickle

from holdfast.runtime.context import KeyedStateStore, OperatorStateStore, RuntimeContext, bind_again
from holdfast.runtime.environment import OperatorEnvironment

_HANDLE, _CONTEXT = "handle", "context"


class _FieldPickler(cloudpickle.Pickler):  # type: ignore[misc]
    def __init__(self, file: io.BytesIO, environment: OperatorEnvironment) -> None:
        super().__init__(file)
        self._bindings = environment.bindings

    def persistent_id(self, obj: Any) -> Any:
        binding = self._bindings.get(id(obj))
        if binding is not None:
            return _HANDLE, *binding
        if isinstance(obj, KeyedStateStore | OperatorStateStore):
            return _CONTEXT, type(obj).__name__
        return None


class _FieldUnpickler(pickle.Unpickler):
    def __init__(self, data: bytes, environment: OperatorEnvironment) -> None:
        super().__init__(io.BytesIO(data))
        self._environment = environment

    def persistent_load(self, pid: Any) -> Any:
        if pid[0] == _HANDLE:
            return bind_again(self._environment, pid[1], pid[2])
        contexts = {kind.__name__: kind for kind in (RuntimeContext, KeyedStateStore, OperatorStateStore)}
        return contexts[pid[1]](self._environment)


@dataclass(frozen=True, slots=True)
class PackedFields:
    """Pickled fields, and the names of those that could not be."""

    data: bytes
    left_behind: tuple[str, ...] = ()


def pack_fields(fields: dict[str, Any], environment: OperatorEnvironment) -> PackedFields:
    try:
        return PackedFields(_dump(fields, environment))
    except Exception:
        # One field at a time, to find out which one it is.
        travelling, left_behind = {}, []
        for name, value in fields.items():
            try:
                _dump(value, environment)
                travelling[name] = value
            except Exception:
                left_behind.append(name)
        return PackedFields(_dump(travelling, environment), tuple(left_behind))


def unpack_fields(packed: PackedFields, environment: OperatorEnvironment) -> dict[str, Any]:
    fields: dict[str, Any] = _FieldUnpickler(packed.data, environment).load()
    return fields


def _dump(value: Any, environment: OperatorEnvironment) -> bytes:
    buffer = io.BytesIO()
    _FieldPickler(buffer, environment).dump(value)
    return buffer.getvalue()
