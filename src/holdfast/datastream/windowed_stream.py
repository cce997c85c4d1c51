"""Windowed streams: between ``window()`` and the function that sees the windows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from holdfast.coverage.answers import SaysWhatToUse
from holdfast.datastream.column_functions import check_event_times, window_aggregation_of
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
from holdfast.runtime.output_tag import OutputTag
from holdfast.runtime.row_path import RowPath
from holdfast.runtime.windowing.assigners import MergingWindowAssigner, WindowAssigner
from holdfast.runtime.windowing.co_group import Sides
from holdfast.runtime.windowing.contents import Aggregated, Contents, Evicted, Known, Listed, Reduced
from holdfast.runtime.windowing.count_windows import CountSlidingWindowAssigner, CountTumblingWindowAssigner
from holdfast.runtime.windowing.evictors import Evictor
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
from holdfast.runtime.windowing.known_aggregates import GiveRow, KnownAggregates
from holdfast.runtime.windowing.operator import WindowOperator
from holdfast.runtime.windowing.triggers import Trigger
from holdfast.runtime.windowing.ways import combined_on_the_way
from holdfast.runtime.windowing.window_spec import WindowSpec
from holdfast.types.durations import milliseconds_of
from holdfast.types.resolve import resolve
from holdfast.types.typeinfo import TypeInformation

if TYPE_CHECKING:
    from holdfast.datastream.data_stream import DataStream, KeyedStream


class WindowSettings(SaysWhatToUse):
    """When windows fire, how long they wait for late rows, and what is removed from them."""

    def __init__(self, environment: Any, window_assigner: WindowAssigner[Any, Any]) -> None:
        if not isinstance(window_assigner, WindowAssigner):
            raise TypeError(f"window() takes a window assigner; got {window_assigner!r}.")
        self._assigner = window_assigner
        self._path: RowPath = environment.row_path
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

    def all_rows(self, row_type: TypeInformation) -> Contents:
        """Contents of all rows, with what an evictor asks for."""
        return Listed(row_type) if self._evictor is None else Evicted(row_type, self._evictor)

    def spec(self, contents: Contents, function: WindowProcess, sides: Sides | None = None) -> WindowSpec:
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
            sides,
            self._path,
        )


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
        contents = Reduced(reduce_function, row_type)
        behind = self._behind(window_function)
        if window_function is None and output_type is None:
            output_type = row_type
        if self._evictor is not None:
            return self._all_rows("Window Reduce", ReduceFirst(contents.descriptor.reduce, behind), output_type)
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
        contents = Aggregated(aggregate_function, resolve(accumulator_type))
        behind = self._behind(window_function)
        if self._evictor is not None:
            return self._all_rows("Window Aggregate", AggregateFirst(aggregate_function, behind), output_type)
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
            contents = Evicted(self.get_input_type(), self._evictor, function.timed)
            first = AggregateFirst(function, GiveRow(known))
            return self._add("Window Aggregate", contents, first, known.output_type())
        return self._add("Window Aggregate", Known(known), GiveRow(known), known.output_type())

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
        return self._add(name, self.all_rows(self.get_input_type()), function, output_type)

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

    def _add(self, name: str, contents: Contents, function: WindowProcess, output_type: Any) -> DataStream:
        stream = self._stream
        spec, combine = combined_on_the_way(self.spec(contents, function), stream.get_key_type())
        rows = replace(stream._connection(), combine=combine)
        return self._placed(stream._add_node(name, WindowOperator, spec, output_type, [rows]))

    def _placed(self, results: DataStream) -> DataStream:
        """The results, with as many subtasks as the windows can have."""
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


def count_windows(size: int, slide: int) -> WindowAssigner[Any, Any]:
    """The assigner of ``count_window``."""
    return CountTumblingWindowAssigner(size) if slide == 0 else CountSlidingWindowAssigner(size, slide)
