"""Two streams in one set of windows: rows of the first come to input 0, those of the second to input 1.

A window holds (side, row of the first stream or None, row of the second or None); triggers, evictors and assigners see
rows in this form.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from holdfast.runtime.batch import Batch
from holdfast.runtime.functions import method_of
from holdfast.runtime.windowing.contexts import WindowContext
from holdfast.runtime.windowing.functions import WrappingProcess
from holdfast.types.typeinfo import TypeInformation, Types

FIRST, SECOND = 0, 1

SidedRow = tuple[int, Any, Any]


def sided_type(first: TypeInformation, second: TypeInformation) -> TypeInformation:
    """The type of rows with their side."""
    return Types.TUPLE([Types.BYTE(), first, second])


class Sides:
    """The rows of two streams in the windows of one operator."""

    def read(self, batch: Batch, input_index: int) -> Batch:
        """The rows of an input with their side."""
        return batch.read_as(_of_first if input_index == FIRST else _of_second)

    def row_of(self, value: SidedRow) -> Any:
        """A row as it came."""
        return value[1 + value[0]]


def _of_first(rows: list[Any]) -> list[SidedRow]:
    return [(FIRST, row, None) for row in rows]


def _of_second(rows: list[Any]) -> list[SidedRow]:
    return [(SECOND, None, row) for row in rows]


def _sides(elements: list[SidedRow]) -> tuple[list[Any], list[Any]]:
    return [row for side, row, _ in elements if side == FIRST], [row for side, _, row in elements if side == SECOND]


class CallCoGroup(WrappingProcess):
    """A CoGroupFunction."""

    def process(self, key: Any, context: WindowContext[Any], elements: list[Any]) -> Iterable[Any] | None:
        results: Iterable[Any] | None = method_of(self.wrapped_function, "co_group")(*_sides(elements))
        return results


class CallJoin(WrappingProcess):
    """A JoinFunction, for every pair of rows."""

    def process(self, key: Any, context: WindowContext[Any], elements: list[Any]) -> Iterable[Any] | None:
        join = method_of(self.wrapped_function, "join")
        firsts, seconds = _sides(elements)
        return [join(first, second) for first in firsts for second in seconds]


class CallFlatJoin(WrappingProcess):
    """A FlatJoinFunction, for every pair of rows."""

    def process(self, key: Any, context: WindowContext[Any], elements: list[Any]) -> Iterable[Any] | None:
        join = self.wrapped_function.join
        firsts, seconds = _sides(elements)
        return [row for first in firsts for second in seconds for row in join(first, second) or ()]
