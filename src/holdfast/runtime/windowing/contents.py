"""What a program keeps of the rows of a window, declared: all of them, or what they are reduced or aggregated to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from holdfast.runtime.windowing.evictors import Evictor
from holdfast.runtime.windowing.known_aggregates import KnownAggregates, WindowAggregation
from holdfast.runtime.windowing.stored_contents import (
    EvictedContents,
    FoldedContents,
    ListedContents,
    WindowContents,
)
from holdfast.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
)
from holdfast.types.typeinfo import TypeInformation, Types

if TYPE_CHECKING:
    from holdfast.runtime.windowing.operator import WindowOperator

#: The state of a window's contents: Flink's name.
CONTENTS = "window-contents"


class Contents(ABC):
    """Says which state the contents of windows are."""

    descriptor: StateDescriptor

    @abstractmethod
    def bind(self, operator: WindowOperator) -> WindowContents:
        """The contents in the state of an operator."""


class Listed(Contents):
    """All rows, in the order in which they came."""

    def __init__(self, row_type: TypeInformation) -> None:
        self.descriptor = ListStateDescriptor(CONTENTS, row_type)

    def bind(self, operator: WindowOperator) -> WindowContents:
        return ListedContents(operator, self.descriptor)


class Evicted(Contents):
    """All rows with their times, of which an evictor removes some when the window fires."""

    def __init__(self, row_type: TypeInformation, evictor: Evictor, timed: bool = False) -> None:
        """``timed``: the function is given rows with their times."""
        self.descriptor = ListStateDescriptor(CONTENTS, Types.TUPLE([row_type, Types.LONG()]))
        self._evictor = evictor
        self._timed = timed

    def bind(self, operator: WindowOperator) -> WindowContents:
        return EvictedContents(operator, self.descriptor, self._evictor, self._timed)


class _Folded(Contents):
    def bind(self, operator: WindowOperator) -> WindowContents:
        return FoldedContents(operator, self.descriptor)


class Reduced(_Folded):
    """The one row that a reduce function leaves."""

    descriptor: ReducingStateDescriptor

    def __init__(self, reduce_function: Any, row_type: TypeInformation) -> None:
        self.descriptor = ReducingStateDescriptor(CONTENTS, reduce_function, row_type)


class Aggregated(_Folded):
    """The accumulator of an aggregate function."""

    def __init__(self, aggregate_function: Any, accumulator_type: TypeInformation) -> None:
        self.descriptor = AggregatingStateDescriptor(CONTENTS, aggregate_function, accumulator_type)


class Known(_Folded):
    """The partial values of known aggregates, which columns can be folded into too."""

    def __init__(self, known: WindowAggregation) -> None:
        self.known = known
        function = KnownAggregates(known.aggregation, known.combined)
        #: Whether they are made of rows with their event times.
        self.timed = function.timed
        self.descriptor = AggregatingStateDescriptor(CONTENTS, function, known.aggregation.state_type())

    def bind(self, operator: WindowOperator) -> WindowContents:
        return FoldedContents(operator, self.descriptor, self.timed)
