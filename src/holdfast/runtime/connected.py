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
from holdfast.runtime.keyed import KeyedFlatMapOperator, KeyedMapOperator, KeyedProcessOperator
from holdfast.runtime.stateless import FlatMapOperator, MapOperator, ProcessOperator, RowMapper, select_rows

#: The input that rows of the second stream come to.
SECOND_INPUT = 1


class TwoInputOperator(FunctionOperator):
    """Gives rows to the method of their stream: ``map1`` or ``map2``, and the like."""

    def row_function(self, input_index: int) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(self.function, f"{self.row_method}{input_index + 1}")
        return function


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


class KeyedCoProcessOperator(TwoInputOperator, KeyedProcessOperator):
    """A process function of two keyed streams, with timers for the keys."""
