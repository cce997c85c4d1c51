"""The harness of windows: assigner, trigger, evictor, lateness and the functions behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

from holdfast.datastream.data_stream import DataStream
from holdfast.datastream.functions import AggregateFunction, ReduceFunction
from holdfast.datastream.stream_execution_environment import StreamExecutionEnvironment
from holdfast.datastream.window_functions import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from holdfast.datastream.windowed_stream import AllWindowedStream, WindowedStream
from holdfast.errors import ProgramError
from holdfast.runtime.output_tag import OutputTag
from holdfast.runtime.windowing.assigners import WindowAssigner
from holdfast.runtime.windowing.contexts import PER_WINDOW, WindowStates
from holdfast.runtime.windowing.evictors import Evictor
from holdfast.runtime.windowing.operator import WindowOperator
from holdfast.runtime.windowing.triggers import Trigger
from holdfast.state.descriptors import StateDescriptor
from holdfast.testing.keyed import KeyedView, content_of
from holdfast.testing.operator_places import Key, Place
from holdfast.testing.options import HarnessOptions, Setup
from holdfast.testing.pushing import OneInput


class WindowOptions(HarnessOptions, total=False):
    """The keyword arguments of ``WindowHarness``: what a program sets on a windowed stream, and those of all harnesses.
    """

    trigger: Trigger[Any, Any]
    evictor: Evictor
    allowed_lateness: Any
    #: Rows that come too late go to this side output.
    late_data: OutputTag
    #: What sees the one row that a reduce or aggregate function leaves of a window.
    window_function: Any
    accumulator_type: Any


_OF_WINDOWS = WindowOptions.__annotations__.keys() - HarnessOptions.__annotations__.keys()


@dataclass(frozen=True)
class OnWindows(Place):
    """The place of a function behind the windows of a keyed stream, or of all rows."""

    assigner: WindowAssigner[Any, Any]
    key: Key | None
    options: WindowOptions

    def build(self, environment: StreamExecutionEnvironment, setup: Setup) -> DataStream:
        stream = environment.from_collection([], setup.input_type)
        windows: WindowedStream | AllWindowedStream
        if self.key is None:
            windows = stream.window_all(self.assigner)
        else:
            windows = self.key.of(stream).window(self.assigner)
        given = self.options
        if "trigger" in given:
            windows.trigger(given["trigger"])
        if "evictor" in given:
            windows.evictor(given["evictor"])
        if "allowed_lateness" in given:
            windows.allowed_lateness(given["allowed_lateness"])
        if "late_data" in given:
            windows.side_output_late_data(given["late_data"])
        return self._results(windows, setup.output_type)

    def _results(self, windows: WindowedStream | AllWindowedStream, output_type: Any) -> DataStream:
        function, behind = self.function, self.options.get("window_function")
        if isinstance(function, AggregateFunction):
            return windows.aggregate(function, behind, self.options.get("accumulator_type"), output_type)
        if isinstance(function, (ProcessWindowFunction, ProcessAllWindowFunction)):
            return windows.process(function, output_type)
        if isinstance(function, (WindowFunction, AllWindowFunction)):
            return windows.apply(function, output_type)
        if isinstance(function, ReduceFunction) or callable(function):
            return windows.reduce(function, behind, output_type)
        raise ProgramError(
            f"{function!r} is no function of windows: give a ReduceFunction or a function of two rows, an "
            "AggregateFunction, a WindowFunction or a ProcessWindowFunction."
        )


class WindowHarness(OneInput, KeyedView):
    """Windows of a keyed stream, or of all rows where ``key_selector`` is None, and the function that sees them.

    Options are those of ``WindowOptions``.
    """

    def __init__(
        self,
        function: Any,
        window_assigner: WindowAssigner[Any, Any],
        key_selector: Any = None,
        key_type: Any = None,
        **options: Unpack[WindowOptions],
    ) -> None:
        key = None if key_selector is None else Key(key_selector, key_type)
        if "late_data" in options:
            options["side_outputs"] = [*options.get("side_outputs", ()), options["late_data"]]
        others: Any = {name: value for name, value in options.items() if name not in _OF_WINDOWS}
        super().__init__(OnWindows(function, window_assigner, key, options), Setup.of(others))

    def window_state(self, descriptor: StateDescriptor, key: Any, window: Any) -> Any:
        """What a key has in a window's own state; ``state`` is that of the key, which all its windows share."""
        head = self._head()
        assert isinstance(head, WindowOperator)
        states = WindowStates(self._backend(), PER_WINDOW, head.windows.type_info)
        return self._of_key(key, lambda: content_of(descriptor, states.get(descriptor, head.windows.namespace(window))))
