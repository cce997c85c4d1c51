"""Windowed streams: between ``window()`` and the function that sees the windows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from holdfast.datastream.column_functions import (
    check_event_times,
    combination_of,
    has_fixed_windows,
    window_aggregation_of,
    windows_by_column,
)
from holdfast.datastream.functions import AggregateFunction, ReduceFunction
from holdfast.datastream.window_functions import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from holdfast.errors import ProgramError
from holdfast.graph.stream_graph import KeyBy
from holdfast.runtime.aggregates import Aggregate
from holdfast.runtime.local_aggregation import Combination
from holdfast.runtime.output_tag import OutputTag
from holdfast.runtime.windowing.assigners import MergingWindowAssigner, WindowAssigner
from holdfast.runtime.windowing.by_column import ColumnWindowOperator
from holdfast.runtime.windowing.count_windows import CountSlidingWindowAssigner, CountTumblingWindowAssigner
from holdfast.runtime.windowing.evicting import EvictingWindowOperator
from holdfast.runtime.windowing.evictors import Evictor
from holdfast.runtime.windowing.folded_windows import FoldedWindowOperator
from holdfast.runtime.windowing.functions import (
    AggregateFirst,
    CallApply,
    CallApplyAll,
    CallProcess,
    CallProcessAll,
    GiveOut,
    ReduceFirst,
    WindowProcess,
)
from holdfast.runtime.windowing.known_aggregates import GiveRow, KnownAggregates, WindowAggregation
from holdfast.runtime.windowing.listed_windows import ListedWindowOperator
from holdfast.runtime.windowing.operator import WindowOperator, WindowSpec
from holdfast.runtime.windowing.session_windows import DynamicEventTimeSessionWindows, EventTimeSessionWindows
from holdfast.runtime.windowing.sessions import SessionOperator
from holdfast.runtime.windowing.time_triggers import EventTimeTrigger
from holdfast.runtime.windowing.triggers import Trigger
from holdfast.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
)
from holdfast.types.durations import milliseconds_of
from holdfast.types.resolve import resolve
from holdfast.types.typeinfo import TypeInformation, Types

if TYPE_CHECKING:
    from holdfast.datastream.data_stream import DataStream, KeyedStream

#: The state of a window's contents: Flink's name.
CONTENTS = "window-contents"


class WindowSettings:
    """When windows fire, how long they wait for late rows, and what is removed from them."""

    def __init__(self, environment: Any, window_assigner: WindowAssigner[Any, Any]) -> None:
        if not isinstance(window_assigner, WindowAssigner):
            raise TypeError(f"window() takes a window assigner; got {window_assigner!r}.")
        self._assigner = window_assigner
        self._allowed_lateness = 0
        self._late_tag: OutputTag | None = None
        self._evictor: Evictor | None = None
        self.trigger(window_assigner.get_default_trigger(environment))

    def trigger(self, trigger: Trigger[Any, Any]) -> Self:
        """When windows fire, in the place of the assigner's own trigger."""
        if not isinstance(trigger, Trigger):
            raise TypeError(f"trigger() takes a Trigger; got {trigger!r}.")
        if isinstance(self._assigner, MergingWindowAssigner) and not trigger.can_merge():
            raise TypeError(
                f"{self._assigner!r} merges windows, and {type(trigger).__name__} cannot: its can_merge() is false."
            )
        self._trigger = trigger
        return self

    def allowed_lateness(self, time_ms: Any) -> Self:
        """How long windows are kept behind their end: rows that come by then make them fire again."""
        self._allowed_lateness = milliseconds_of(time_ms)
        return self

    def side_output_late_data(self, output_tag: OutputTag) -> Self:
        """Rows whose windows are gone go to a side output of the result, instead of nowhere."""
        if not isinstance(output_tag, OutputTag):
            raise TypeError(f"side_output_late_data() takes an OutputTag; got {output_tag!r}.")
        self._late_tag = output_tag
        return self

    def evictor(self, evictor: Evictor) -> Self:
        """Remove rows from windows that fire. All rows are kept until then, whatever function comes behind."""
        if not isinstance(evictor, Evictor):
            raise TypeError(f"evictor() takes an Evictor; got {evictor!r}.")
        self._evictor = evictor
        return self

    def spec(self, contents: StateDescriptor, function: WindowProcess) -> WindowSpec:
        if self._late_tag is not None and not self._assigner.is_event_time():
            raise ProgramError(
                f"side_output_late_data() with {self._assigner!r}: by processing time no row is late. Use "
                "windows by event time."
            )
        return WindowSpec(
            self._assigner,
            self._trigger,
            contents,
            function,
            self._allowed_lateness,
            self._late_tag,
            self._evictor,
        )


def evicted_contents(row_type: TypeInformation) -> StateDescriptor:
    """Rows with their times."""
    return ListStateDescriptor(CONTENTS, Types.TUPLE([row_type, Types.LONG()]))


class _Windowed(WindowSettings):
    """What both kinds of windowed streams share. They differ in the functions that they take."""

    #: (class of function, what calls it), for ``apply`` and ``process``.
    _applied: tuple[type, type[WindowProcess]]
    _processed: tuple[type, type[WindowProcess]]

    def __init__(self, keyed_stream: KeyedStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        super().__init__(keyed_stream.get_execution_environment(), window_assigner)
        self._stream = keyed_stream

    def get_execution_environment(self) -> Any:
        return self._stream.get_execution_environment()

    def get_input_type(self) -> TypeInformation:
        return self._stream.get_type()

    def reduce(self, reduce_function: Any, window_function: Any = None, output_type: Any = None) -> DataStream:
        """Reduce the rows of each window as they come. ``window_function`` is given the one row that is left."""
        if not isinstance(reduce_function, ReduceFunction) and not callable(reduce_function):
            raise TypeError(f"reduce() takes a ReduceFunction or a function of two rows; got {reduce_function!r}.")
        row_type = self.get_input_type()
        contents = ReducingStateDescriptor(CONTENTS, reduce_function, row_type)
        behind = self._behind(window_function)
        if window_function is None and output_type is None:
            output_type = row_type
        if self._evictor is not None:
            return self._evicting("Window Reduce", ReduceFirst(contents.reduce, behind), output_type)
        return self._add("Window Reduce", contents, behind, output_type)

    def aggregate(
        self,
        aggregate_function: AggregateFunction | None = None,
        window_function: Any = None,
        accumulator_type: Any = None,
        output_type: Any = None,
        **aggregates: Aggregate,
    ) -> DataStream:
        """Aggregate the rows of each window as they come. ``window_function`` is given the one result.

        Or known aggregates, by name: ``aggregate(orders=Count(), revenue=Sum("price"))``. They give the columns of the
        key, for windows of time ``window_start`` and ``window_end`` in milliseconds, and the aggregates. The key must
        be one of columns. Tumbling and sliding windows that fire by their own trigger are computed by column.
        """
        if aggregates:
            beside = (aggregate_function, window_function, accumulator_type, output_type)
            return self._known_aggregates(aggregates, beside)
        if not isinstance(aggregate_function, AggregateFunction):
            raise TypeError(
                f"aggregate() takes an AggregateFunction, or known aggregates by name, aggregate(rows=Count()); got "
                f"{aggregate_function!r}."
            )
        contents = AggregatingStateDescriptor(CONTENTS, aggregate_function, resolve(accumulator_type))
        behind = self._behind(window_function)
        if self._evictor is not None:
            return self._evicting("Window Aggregate", AggregateFirst(aggregate_function, behind), output_type)
        return self._add("Window Aggregate", contents, behind, output_type)

    def _known_aggregates(self, aggregates: dict[str, Aggregate], beside: tuple[Any, ...]) -> DataStream:
        if beside != (None,) * len(beside):
            raise ProgramError(
                f"aggregate() was given {', '.join(aggregates)} by name, and a function or a type beside them. Known "
                "aggregates need neither; a map() behind them makes other rows of their results."
            )
        known = window_aggregation_of(self.get_input_type(), self._known_key(), self._assigner, aggregates)
        check_event_times(known.aggregation, self._stream._node.event_time)
        if self._evictor is not None:
            function = KnownAggregates(known.aggregation)
            first = AggregateFirst(function, GiveRow(known))
            return self._evicting("Window Aggregate", first, known.output_type(), function.timed)
        spec = self._known_spec(known)
        if not windows_by_column(spec, known.aggregation, self._stream.get_key_type()):
            return self._add_operator("Window Aggregate", operator_of(spec), spec, known.output_type())
        combine = combination_of(spec, known.aggregation)
        if combine is not None:
            spec = self._known_spec(replace(known, combined=True))
        return self._add_operator("Window Aggregate", ColumnWindowOperator, spec, known.output_type(), combine)

    def _known_spec(self, known: WindowAggregation) -> WindowSpec:
        function = KnownAggregates(known.aggregation, known.combined)
        contents = AggregatingStateDescriptor(CONTENTS, function, known.aggregation.state_type())
        return replace(self.spec(contents, GiveRow(known)), timed=function.timed)

    def _known_key(self) -> KeyBy | None:
        """The key that rows of known aggregates begin with."""
        return self._stream._key_by

    def apply(self, window_function: Any, output_type: Any = None) -> DataStream:
        """All rows of a window to a function, when it fires."""
        return self._all_rows("Window Apply", self._call(window_function, self._applied), output_type)

    def process(self, process_window_function: Any, output_type: Any = None) -> DataStream:
        """All rows of a window to a function with a context, when it fires."""
        return self._all_rows("Window Process", self._call(process_window_function, self._processed), output_type)

    def _all_rows(self, name: str, function: WindowProcess, output_type: Any) -> DataStream:
        if self._evictor is not None:
            return self._evicting(name, function, output_type)
        return self._add(name, ListStateDescriptor(CONTENTS, self.get_input_type()), function, output_type)

    def _behind(self, window_function: Any) -> WindowProcess:
        """What sees the one row that a window was reduced to."""
        if window_function is None:
            return GiveOut()
        processed = isinstance(window_function, self._processed[0])
        return self._call(window_function, self._processed if processed else self._applied)

    def _call(self, function: Any, kind: tuple[type, type[WindowProcess]]) -> WindowProcess:
        expected, calling = kind
        if not isinstance(function, expected):
            raise TypeError(f"These windows take a {expected.__name__} here; got {type(function).__name__}.")
        found: WindowProcess = calling(function)  # type: ignore[call-arg]  # a class of that kind
        return found

    def _evicting(self, name: str, function: WindowProcess, output_type: Any, timed: bool = False) -> DataStream:
        spec = replace(self.spec(evicted_contents(self.get_input_type()), function), timed=timed)
        return self._add_operator(name, EvictingWindowOperator, spec, output_type)

    def _add(self, name: str, contents: StateDescriptor, function: WindowProcess, output_type: Any) -> DataStream:
        spec = self.spec(contents, function)
        return self._add_operator(name, operator_of(spec), spec, output_type)

    def _add_operator(
        self,
        name: str,
        operator: type[WindowOperator],
        spec: WindowSpec,
        output_type: Any,
        combine: Combination | None = None,
    ) -> DataStream:
        """``combine``: how rows are put together on their way to it."""
        rows = replace(self._stream._connection(), combine=combine)
        return self._placed(self._stream._add_node(name, operator, spec, output_type, [rows]))

    def _placed(self, results: DataStream) -> DataStream:
        """With as many subtasks as the windows can have."""
        return results


class WindowedStream(_Windowed):
    """A keyed stream whose rows are grouped into windows, each key on its own."""

    _applied = (WindowFunction, CallApply)
    _processed = (ProcessWindowFunction, CallProcess)


class AllWindowedStream(_Windowed):
    """A stream whose rows are grouped into windows, by one subtask."""

    _applied = (AllWindowFunction, CallApplyAll)
    _processed = (ProcessAllWindowFunction, CallProcessAll)

    def _known_key(self) -> KeyBy | None:
        return None

    def _placed(self, results: DataStream) -> DataStream:
        return results.force_non_parallel()


def operator_of(spec: WindowSpec) -> type[WindowOperator]:
    """What adds rows to windows: batches of them where windows are of a fixed size, or are sessions whose rows are
    reduced or aggregated; else one row at a time.
    """
    if spec.timed:
        return WindowOperator
    listed = spec.contents.kind == "list"
    if has_fixed_windows(spec):
        return ListedWindowOperator if listed else FoldedWindowOperator
    if listed:
        return WindowOperator
    sessions = type(spec.assigner) in (EventTimeSessionWindows, DynamicEventTimeSessionWindows)
    return SessionOperator if sessions and type(spec.trigger) is EventTimeTrigger else WindowOperator


def count_windows(size: int, slide: int) -> WindowAssigner[Any, Any]:
    """The assigner of ``count_window``."""
    return CountTumblingWindowAssigner(size) if slide == 0 else CountSlidingWindowAssigner(size, slide)
