"""Short forms on keyed streams: sum, min, max and functions with one state, as ordinary functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from holdfast.datastream.functions import FlatMapFunction, RuntimeContext, WrappingFunction
from holdfast.errors import ProgramError
from holdfast.runtime.field_reducers import VALUE_REDUCERS, FieldReducer
from holdfast.state.descriptors import ValueStateDescriptor
from holdfast.types.resolve import resolve
from holdfast.types.row import Row
from holdfast.types.typeinfo import FieldsTypeInfo, TypeInformation

if TYPE_CHECKING:
    from holdfast.datastream.data_stream import DataStream


def field_reducer(kind: str, position: int | str, row_type: TypeInformation) -> Callable[[Any, Any], Any]:
    """A reduce function over one field. ``Sum``, ``Min`` and ``Max`` keep the other fields of the first row, the
    ``By`` forms take the whole row, the earlier one where two are equal. A row that is a single value is its field 0.
    """
    if not isinstance(position, (int, str)):
        raise TypeError(f"{kind}: the position of a field is a number or its name; got {position!r}.")
    if not row_type.declared:
        return _undeclared_reducer(kind, position)
    if not isinstance(row_type, FieldsTypeInfo):
        if position != 0:
            raise ProgramError(f"The rows ({row_type.describe()}) have no fields; leave the position {position!r} out.")
        return VALUE_REDUCERS[kind]
    names = list(row_type.field_names)
    if position not in names and not (isinstance(position, int) and 0 <= position < len(names)):
        raise ProgramError(
            f"The rows ({row_type.describe()}) have no field {position!r}; they have 0 to {len(names) - 1}, named "
            f"{', '.join(names)}."
        )
    return FieldReducer(kind, names.index(position) if isinstance(position, str) else position)


def _undeclared_reducer(kind: str, position: int | str) -> Callable[[Any, Any], Any]:
    """The reducer of a stream without a type: its rows say what they are."""
    of_fields, of_values = FieldReducer(kind, position), VALUE_REDUCERS[kind]

    def reduce(a: Any, b: Any) -> Any:
        return of_fields(a, b) if isinstance(a, (tuple, list, Row)) else of_values(a, b)

    return reduce


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


class ShortForms(ABC):
    """PyFlink's short forms of keyed streams: sum, min, max, min_by, max_by."""

    @abstractmethod
    def flat_map(self, func: Any, output_type: Any = None) -> DataStream: ...

    @abstractmethod
    def reduce(self, func: Any) -> DataStream: ...

    @abstractmethod
    def get_type(self) -> TypeInformation: ...

    def sum(self, position_to_sum: int | str = 0) -> DataStream:
        return self._aggregate("Sum", position_to_sum)

    def min(self, position_to_min: int | str = 0) -> DataStream:
        return self._aggregate("Min", position_to_min)

    def max(self, position_to_max: int | str = 0) -> DataStream:
        return self._aggregate("Max", position_to_max)

    def min_by(self, position_to_min_by: int | str = 0) -> DataStream:
        return self._aggregate("Min By", position_to_min_by)

    def max_by(self, position_to_max_by: int | str = 0) -> DataStream:
        return self._aggregate("Max By", position_to_max_by)

    def map_with_state(
        self, func: Callable[[Any, Any], tuple[Any, Any]], state_type: Any = None, output_type: Any = None
    ) -> DataStream:
        """``func(row, state) -> (result, new state)``; the state is None at first, and None as the new state clears
        it.
        """
        return self.flat_map(state_mapper(func, resolve(state_type), flat=False), output_type).name("Map With State")

    def flat_map_with_state(
        self, func: Callable[[Any, Any], tuple[Any, Any]], state_type: Any = None, output_type: Any = None
    ) -> DataStream:
        """``func(row, state) -> (iterable of results, new state)``."""
        return self.flat_map(state_mapper(func, resolve(state_type), flat=True), output_type).name(
            "Flat Map With State"
        )

    def _aggregate(self, name: str, position: int | str) -> DataStream:
        return self.reduce(field_reducer(name, position, self.get_type())).name(name)
