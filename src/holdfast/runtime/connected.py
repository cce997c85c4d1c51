"""Operators of two connected streams: rows of the first come to input 0, those of the second to input 1.

Within an epoch all rows of the first stream come before those of the second (see ``graph/planner.py``), each in the
order of its channels, so that every run sees one order. Event time is the lesser of the two. Behind a ``key_by`` of
both streams a key has one state, which both see.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.runtime.batch import Batch
from holdfast.runtime.functions import FunctionOperator
from holdfast.runtime.keyed import KeyedFlatMapOperator, KeyedMapOperator, KeyedProcessOperator, ProcessHosting
from holdfast.runtime.plan import OperatorSpec
from holdfast.runtime.stateless import FlatMapOperator, MapOperator, ProcessOperator, RowMapper, select_rows

#: The input that rows of the second stream come to.
SECOND_INPUT = 1


def method_of_input(function: Any, name: str, input_index: int) -> Callable[..., Any]:
    """The method that rows of a stream are given to: ``map1`` or ``map2``, and the like."""
    method: Callable[..., Any] = getattr(function, f"{name}{input_index + 1}")
    return method


class TwoInputOperator(FunctionOperator):
    """Gives rows to the method of their stream."""

    def row_function(self, input_index: int) -> Callable[..., Any]:
        return method_of_input(self.function, self.row_method, input_index)


class TwoInputMapper(TwoInputOperator, RowMapper):
    """A result that is None is no row."""

    def mapped(self, batch: Batch, results: list[Any]) -> Batch:
        return select_rows(super().mapped(batch, results), [i for i, row in enumerate(results) if row is not None])


class CoMapOperator(TwoInputMapper, MapOperator):
    """One row for each row, or none."""


class KeyedCoMapOperator(TwoInputMapper, KeyedMapOperator):
    """One row for each row, or none, with the state of its key."""


class CoFlatMapOperator(TwoInputOperator, FlatMapOperator):
    """Any number of rows for each row."""


class KeyedCoFlatMapOperator(TwoInputOperator, KeyedFlatMapOperator):
    """Any number of rows for each row, with the state of its key."""


class CoProcessOperator(TwoInputOperator, ProcessOperator):
    """A process function of two streams without keys."""


class _TwoInputs(ProcessHosting):
    def row_function(self, function: Any, input_index: int) -> Callable[..., Any]:
        return method_of_input(function, "process_element", input_index)


def keyed_co_process_operator(spec: OperatorSpec) -> KeyedProcessOperator:
    """A process function of two keyed streams, with timers for the keys."""
    return KeyedProcessOperator(spec, _TwoInputs())
