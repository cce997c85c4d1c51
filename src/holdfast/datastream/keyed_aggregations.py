"""Short forms on keyed streams: sum, min, max and functions with one state, as ordinary functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass
from operator import gt, lt
from typing import TYPE_CHECKING, Any

from holdfast.datastream.functions import FlatMapFunction, RuntimeContext, WrappingFunction
from holdfast.errors import ProgramError
from holdfast.runtime.partial_aggregates import WHOLE_MAX, WHOLE_MIN, WHOLE_SUM, PartialFunction
from holdfast.state.descriptors import ValueStateDescriptor
from holdfast.types.resolve import resolve
from holdfast.types.row import Row
from holdfast.types.typeinfo import (
    FieldsTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)

if TYPE_CHECKING:
    from holdfast.datastream.data_stream import DataStream


def _with_field(row: Any, index: Any, value: Any) -> Any:
    if isinstance(row, Row):
        changed = copy(row)
        changed[index] = value
        return changed
    fields = list(row)
    fields[index] = value
    return tuple(fields)


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
        return _VALUE_REDUCERS[kind]
    names = list(row_type.field_names)
    if position not in names and not (isinstance(position, int) and 0 <= position < len(names)):
        raise ProgramError(
            f"The rows ({row_type.describe()}) have no field {position!r}; they have 0 to {len(names) - 1}, named "
            f"{', '.join(names)}."
        )
    return FieldReducer(kind, names.index(position) if isinstance(position, str) else position)


#: The forms that change one field, which are partial aggregates of it.
_PARTIALS = {"Sum": WHOLE_SUM, "Min": WHOLE_MIN, "Max": WHOLE_MAX}

_VALUE_REDUCERS: dict[str, Callable[[Any, Any], Any]] = {
    **{kind: function.of_two for kind, function in _PARTIALS.items() if function.of_two is not None},
    "Min By": min,
    "Max By": max,
}


@dataclass(frozen=True)
class FieldReducer:
    """A reduce function that says what it does, for whoever can do it by column."""

    kind: str
    index: Any

    @property
    def partial(self) -> PartialFunction:
        """What is done with the field, by column too."""
        return _PARTIALS[self.kind]

    def __call__(self, a: Any, b: Any) -> Any:
        kind, index = self.kind, self.index
        if kind in _BETTER:
            return b if _BETTER[kind](b[index], a[index]) else a
        return _with_field(a, index, _VALUE_REDUCERS[kind](a[index], b[index]))


#: The forms that take the whole row.
_BETTER: dict[str, Callable[[Any, Any], bool]] = {"Min By": lt, "Max By": gt}


def works_by_column(reducer: Any, row_type: TypeInformation, key_type: TypeInformation) -> bool:
    """Whether its results can be computed by column, exactly: of integers, in rows whose keys have a column too."""
    if not isinstance(reducer, FieldReducer) or reducer.kind not in _PARTIALS:
        return False
    if not isinstance(row_type, (TupleTypeInfo, RowTypeInfo)):
        return False
    return row_type.field_types[reducer.index].number is int and key_type.key_in_arrow


def _undeclared_reducer(kind: str, position: int | str) -> Callable[[Any, Any], Any]:
    """The reducer of a stream without a type: its rows say what they are."""
    of_fields, of_values = FieldReducer(kind, position), _VALUE_REDUCERS[kind]

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
