"""Fields of functions on their way to the next epoch.

Python workers are not tied to partitions, and a function lives for an attempt: what it holds in ``self`` is pickled
at the end of each epoch, and a process that no longer has the live object takes it up again. State handles travel as
their names and are bound anew. A field that cannot be pickled (a connection) stays behind: ``open()`` makes it again,
and the fields that did travel are laid over its result. A field that leads back to a function (a method of its own, or
another name for what it wraps) leads to the function that takes the fields up, not to a copy with fields of its own.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cloudpickle

from holdfast.runtime.context import KeyedStateStore, OperatorStateStore, bind_again
from holdfast.runtime.environment import OperatorEnvironment
from holdfast.runtime.metrics import MetricGroup

_HANDLE, _CONTEXT, _GROUP, _FUNCTION = "handle", "context", "metric group", "function"
#: What belongs to the running task: it is found there again.
_OF_TASK = (KeyedStateStore, OperatorStateStore, MetricGroup)


class _FieldPickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
    def __init__(self, file: io.BytesIO, environment: OperatorEnvironment, functions: Sequence[Any]) -> None:
        super().__init__(file)
        self._bindings = environment.bindings
        self._functions = {id(function): number for number, function in enumerate(functions)}

    def persistent_id(self, obj: Any) -> Any:
        binding = self._bindings.get(id(obj))
        if binding is not None:
            return _HANDLE, *binding
        if isinstance(obj, _OF_TASK):
            return (_GROUP, obj.scope) if isinstance(obj, MetricGroup) else (_CONTEXT, type(obj))
        number = self._functions.get(id(obj))
        return None if number is None else (_FUNCTION, number)


class _FieldUnpickler(pickle.Unpickler):
    def __init__(self, data: bytes, environment: OperatorEnvironment, functions: Sequence[Any]) -> None:
        super().__init__(io.BytesIO(data))
        self._environment = environment
        self._functions = functions

    def persistent_load(self, pid: Any) -> Any:
        if pid[0] == _HANDLE:
            return bind_again(self._environment, *pid[1:])
        if pid[0] == _GROUP:
            return self._environment.metrics.group(pid[1])
        if pid[0] == _FUNCTION:
            return self._functions[pid[1]]
        return pid[1](self._environment)


@dataclass(frozen=True, slots=True)
class PackedFields:
    """Pickled fields, and the names of those that could not be."""

    data: bytes
    left_behind: tuple[str, ...] = ()


def pack_fields(
    fields: dict[str, Any], environment: OperatorEnvironment, functions: Sequence[Any] = ()
) -> PackedFields:
    """``functions`` are those whose fields they are: ``unpack_fields`` is given their successors."""
    try:
        return PackedFields(_dump(fields, environment, functions))
    except Exception:
        # One field at a time, to find out which one it is.
        travelling, left_behind = {}, []
        for name, value in fields.items():
            try:
                _dump(value, environment, functions)
                travelling[name] = value
            except Exception:
                left_behind.append(name)
        return PackedFields(_dump(travelling, environment, functions), tuple(left_behind))


def unpack_fields(
    packed: PackedFields, environment: OperatorEnvironment, functions: Sequence[Any] = ()
) -> dict[str, Any]:
    fields: dict[str, Any] = _FieldUnpickler(packed.data, environment, functions).load()
    return fields


def _dump(value: Any, environment: OperatorEnvironment, functions: Sequence[Any]) -> bytes:
    buffer = io.BytesIO()
    _FieldPickler(buffer, environment, functions).dump(value)
    return buffer.getvalue()
