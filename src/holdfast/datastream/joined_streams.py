"""Joins of two streams, in the shape of Flink's Java API: in windows, or within an interval of time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from holdfast.datastream.key_versions import check_versions
from holdfast.datastream.window_functions import CoGroupFunction, FlatJoinFunction, JoinFunction, ProcessJoinFunction
from holdfast.datastream.windowed_stream import WindowSettings
from holdfast.errors import ProgramError
from holdfast.runtime.interval_join import IntervalJoinOperator, IntervalJoinSpec
from holdfast.runtime.output_tag import OutputTag
from holdfast.runtime.plan import OperatorFactory
from holdfast.runtime.windowing.assigners import WindowAssigner
from holdfast.runtime.windowing.co_group import (
    CallCoGroup,
    CallFlatJoin,
    CallJoin,
    Sides,
    sided_type,
)
from holdfast.runtime.windowing.functions import WindowProcess
from holdfast.runtime.windowing.operator import WindowOperator
from holdfast.types.durations import offset_of

if TYPE_CHECKING:
    from holdfast.datastream.data_stream import DataStream, KeyedStream

#: The input that rows of the second stream come to.
_SECOND_INPUT = 1


def _add_joined(
    first: KeyedStream, second: KeyedStream, name: str, factory: OperatorFactory, body: Any, output_type: Any
) -> DataStream:
    key_types = first.get_key_type(), second.get_key_type()
    if key_types[0] != key_types[1]:
        raise ProgramError(
            f"'{first.get_name()}' and '{second.get_name()}' cannot be joined: the keys of the first are "
            f"{key_types[0].describe()}, those of the second {key_types[1].describe()}. Give both one key_type."
        )
    check_versions(f"'{first.get_name()}' joined with '{second.get_name()}'", first._key_by, second._key_by)
    beside = replace(second._connection(), input_index=_SECOND_INPUT)
    return first._add(name, factory, body, output_type, beside)


class _Pairing:
    """Two streams, to be keyed: ``where`` names the key of the first, ``equal_to`` that of the second."""

    def __init__(self, first: DataStream, second: DataStream) -> None:
        self._first = first
        self._second = second


class JoinedStreams(_Pairing):
    """What ``join`` gives: every pair of rows with one key in one window."""

    def where(self, key_selector: Any, key_type: Any = None) -> _JoinWhere:
        return _JoinWhere(self._first.key_by(key_selector, key_type), self._second, key_type)


class CoGroupedStreams(_Pairing):
    """What ``co_group`` gives: the rows of both streams with one key in one window, also where one has none."""

    def where(self, key_selector: Any, key_type: Any = None) -> _CoGroupWhere:
        return _CoGroupWhere(self._first.key_by(key_selector, key_type), self._second, key_type)


class _Where:
    def __init__(self, first: KeyedStream, second: DataStream, key_type: Any) -> None:
        self._first = first
        self._second = second
        self._key_type = key_type

    def _second_keyed(self, key_selector: Any, key_type: Any) -> KeyedStream:
        return self._second.key_by(key_selector, self._key_type if key_type is None else key_type)


class _JoinWhere(_Where):
    def equal_to(self, key_selector: Any, key_type: Any = None) -> _JoinEqualTo:
        return _JoinEqualTo(self._first, self._second_keyed(key_selector, key_type))


class _CoGroupWhere(_Where):
    def equal_to(self, key_selector: Any, key_type: Any = None) -> _CoGroupEqualTo:
        return _CoGroupEqualTo(self._first, self._second_keyed(key_selector, key_type))


class _EqualTo:
    def __init__(self, first: KeyedStream, second: KeyedStream) -> None:
        self._first = first
        self._second = second


class _JoinEqualTo(_EqualTo):
    def window(self, window_assigner: WindowAssigner[Any, Any]) -> WindowedJoin:
        return WindowedJoin(self._first, self._second, window_assigner)


class _CoGroupEqualTo(_EqualTo):
    def window(self, window_assigner: WindowAssigner[Any, Any]) -> WindowedCoGroup:
        return WindowedCoGroup(self._first, self._second, window_assigner)


class _WindowedPair(WindowSettings):
    def __init__(
        self, first: KeyedStream, second: KeyedStream, window_assigner: WindowAssigner[Any, Any]
    ) -> None:
        super().__init__(first.get_execution_environment(), window_assigner)
        self._first = first
        self._second = second

    def _add(self, name: str, function: WindowProcess, output_type: Any) -> DataStream:
        rows = sided_type(self._first.get_type(), self._second.get_type())
        spec = self.spec(self.all_rows(rows), function, Sides())
        return _add_joined(self._first, self._second, name, WindowOperator, spec, output_type)


class WindowedJoin(_WindowedPair):
    """Pairs of rows in windows, before the function that sees them."""

    def apply(self, function: Any, output_type: Any = None) -> DataStream:
        """``function`` is a JoinFunction, a FlatJoinFunction, or a function of two rows that gives one."""
        if isinstance(function, FlatJoinFunction):
            return self._add("Window Join", CallFlatJoin(function), output_type)
        if not isinstance(function, JoinFunction) and not callable(function):
            raise TypeError(f"apply() of a join takes a JoinFunction or a FlatJoinFunction; got {function!r}.")
        return self._add("Window Join", CallJoin(function), output_type)


class WindowedCoGroup(_WindowedPair):
    """Rows of two streams in windows, before the function that sees them."""

    def apply(self, function: Any, output_type: Any = None) -> DataStream:
        """``function`` is a CoGroupFunction, or a function of two lists that gives rows."""
        if not isinstance(function, CoGroupFunction) and not callable(function):
            raise TypeError(f"apply() of a co-group takes a CoGroupFunction; got {function!r}.")
        return self._add("Window Co-Group", CallCoGroup(function), output_type)


class IntervalJoin:
    """Two keyed streams, before ``between``."""

    def __init__(self, left: KeyedStream, right: KeyedStream) -> None:
        self._left = left
        self._right = right

    def between(self, lower_bound: Any, upper_bound: Any) -> IntervalJoined:
        """A right row joins a left one when its time is so much later; a negative bound is before it."""
        lower, upper = offset_of(lower_bound), offset_of(upper_bound)
        if lower > upper:
            raise ProgramError(f"between({lower} ms, {upper} ms): the lower bound must not be above the upper one.")
        return IntervalJoined(self._left, self._right, lower, upper)


class IntervalJoined:
    """Two keyed streams and an interval, which includes its bounds unless said otherwise."""

    def __init__(self, left: KeyedStream, right: KeyedStream, lower: int, upper: int) -> None:
        self._left = left
        self._right = right
        self._bounds = [lower, upper]
        self._excluded = [0, 0]
        self._late_tags: list[OutputTag | None] = [None, None]

    def lower_bound_exclusive(self) -> IntervalJoined:
        self._excluded[0] = 1
        return self

    def upper_bound_exclusive(self) -> IntervalJoined:
        self._excluded[1] = 1
        return self

    def side_output_left_late_data(self, output_tag: OutputTag) -> IntervalJoined:
        """Rows of the first stream that come behind the watermark go to a side output, instead of nowhere."""
        self._late_tags[0] = output_tag
        return self

    def side_output_right_late_data(self, output_tag: OutputTag) -> IntervalJoined:
        """Rows of the second stream that come behind the watermark go to a side output, instead of nowhere."""
        self._late_tags[1] = output_tag
        return self

    def process(self, process_join_function: Any, output_type: Any = None) -> DataStream:
        if not isinstance(process_join_function, ProcessJoinFunction):
            given = type(process_join_function).__name__
            raise TypeError(f"process() of an interval join takes a ProcessJoinFunction; got {given}.")
        spec = IntervalJoinSpec(
            process_join_function,
            self._bounds[0] + self._excluded[0],
            self._bounds[1] - self._excluded[1],
            (self._left.get_type(), self._right.get_type()),
            (self._late_tags[0], self._late_tags[1]),
        )
        return _add_joined(self._left, self._right, "Interval Join", IntervalJoinOperator, spec, output_type)
