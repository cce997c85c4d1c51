"""Two streams, of one type or two, for a function that sees both."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from holdfast.coverage.answers import SaysWhatToUse
from holdfast.datastream.functions import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
)
from holdfast.datastream.key_versions import check_versions
from holdfast.errors import ProgramError
from holdfast.runtime import connected
from holdfast.runtime.plan import OperatorFactory
from holdfast.types.resolve import resolve

if TYPE_CHECKING:
    from holdfast.datastream.data_stream import DataStream


class ConnectedStreams(SaysWhatToUse):
    """What ``connect`` gives. Where both streams are keyed, with keys of one type, functions have state by key.

    Where only one is, its rows go to subtasks by their key, and functions are those of streams without keys.
    """

    def __init__(self, stream1: DataStream, stream2: DataStream) -> None:
        self.stream1 = stream1
        self.stream2 = stream2
        self._keyed = _check_keys(stream1, stream2)

    def key_by(self, key_selector1: Any, key_selector2: Any, key_type: Any = None) -> ConnectedStreams:
        """Rows of both streams with the same key come to the same subtask, and to the same state."""
        return ConnectedStreams(
            self.stream1.key_by(key_selector1, key_type), self.stream2.key_by(key_selector2, key_type)
        )

    def map(self, func: CoMapFunction, output_type: Any = None) -> DataStream:
        _check_function(func, "map()", CoMapFunction)
        factory = connected.KeyedCoMapOperator if self._keyed else connected.CoMapOperator
        return self._add("Co-Map", factory, func, output_type)

    def flat_map(self, func: CoFlatMapFunction, output_type: Any = None) -> DataStream:
        _check_function(func, "flat_map()", CoFlatMapFunction)
        factory = connected.KeyedCoFlatMapOperator if self._keyed else connected.CoFlatMapOperator
        return self._add("Co-Flat Map", factory, func, output_type)

    def process(self, func: CoProcessFunction | KeyedCoProcessFunction, output_type: Any = None) -> DataStream:
        _check_function(func, "process()", CoProcessFunction, KeyedCoProcessFunction)
        if self._keyed:
            return self._add("Keyed Co-Process", connected.keyed_co_process_operator, func, output_type)
        if isinstance(func, KeyedCoProcessFunction):
            raise TypeError(
                "A KeyedCoProcessFunction needs two keyed streams: put key_by(...) on both before process(...)."
            )
        return self._add("Co-Process", connected.CoProcessOperator, func, output_type)

    def _add(self, name: str, factory: OperatorFactory, func: Any, output_type: Any) -> DataStream:
        first = replace(self.stream1._connection(), keyed_state=self._keyed)
        second = replace(
            self.stream2._connection(), input_index=connected.SECOND_INPUT, keyed_state=self._keyed
        )
        return self.stream1._add_node(name, factory, func, resolve(output_type), [first, second])


def _check_keys(stream1: DataStream, stream2: DataStream) -> bool:
    """Whether both streams are keyed."""
    first, second = stream1._connection().key_by, stream2._connection().key_by
    if first is None or second is None:
        return False
    names = f"connect() of '{stream1.get_name()}' and '{stream2.get_name()}'"
    if first.key_type != second.key_type:
        raise ProgramError(
            f"{names}: the keys of the first are {first.key_type.describe()}, those of the second "
            f"{second.key_type.describe()}. Equal keys must be of one type to meet: give both the same key_type."
        )
    check_versions(names, first, second)
    return True


def _check_function(func: Any, what: str, *expected: type) -> None:
    if not isinstance(func, expected):
        kinds = " or a ".join(kind.__name__ for kind in expected)
        raise TypeError(f"{what} of connected streams takes a {kinds}; got {type(func).__name__}.")
