"""Short forms on keyed streams: sum, min, max and functions with one state, as ordinary functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from holdfast.datastream.functions import FlatMapFunction, RuntimeContext, WrappingFunction
from holdfast.errors import ProgramError
from holdfast.state.descriptors import ValueStateDescriptor
from holdfast.types.row import Row
from holdfast.types.typeinfo import FieldsTypeInfo, TypeInformation


def _with_field(row: Any, index: int, value: Any) -> Any:
    if isinstance(row, Row):
        changed = row.copy()
        changed[index] = value
        return changed
    fields = list(row)
    fields[index] = value
    return tuple(fields)


def field_reducer(kind: str, position: int | str, row_type: TypeInformation) -> Callable[[Any, Any], Any]:
    """A reduce function over one field. ``Sum``, ``Min`` and ``Max`` keep the other fields of the first row, the
    ``By`` forms take the whole row.
    """
    if isinstance(position, str):
        if not isinstance(row_type, FieldsTypeInfo) or position not in row_type.field_names:
            raise ProgramError(f"The rows ({row_type.describe()}) have no field {position!r}.")
        index = list(row_type.field_names).index(position)
    else:
        index = position
    reducers: dict[str, Callable[[Any, Any], Any]] = {
        "Sum": lambda a, b: _with_field(a, index, a[index] + b[index]),
        "Min": lambda a, b: _with_field(a, index, min(a[index], b[index])),
        "Max": lambda a, b: _with_field(a, index, max(a[index], b[index])),
        "Min By": lambda a, b: b if b[index] < a[index] else a,
        "Max By": lambda a, b: b if b[index] > a[index] else a,
    }
    return reducers[kind]


class _StateMapper(WrappingFunction, FlatMapFunction):
    wrapped_function: Callable[[Any, Any], tuple[Any, Any]]

    def __init__(
        self, function: Callable[[Any, Any], tuple[Any, Any]], state_type: TypeInformation, flat: bool
    ) -> None:
        super().__init__(function)
        self._state_type = state_type
        self._flat = flat

    def open(self, runtime_context: RuntimeContext) -> None:
        super().open(runtime_context)
        self._state = runtime_context.get_state(ValueStateDescriptor("state", self._state_type))

    def flat_map(self, value: Any) -> Iterable[Any] | None:
        before = self._state.value()
        result, after = self.wrapped_function(value, before)
        if after is None:
            if before is not None:
                self._state.clear()
        else:
            self._state.update(after)
        return result if self._flat else (result,)


def state_mapper(
    function: Callable[[Any, Any], tuple[Any, Any]], state_type: TypeInformation, flat: bool
) -> FlatMapFunction:
    return _StateMapper(function, state_type, flat)
