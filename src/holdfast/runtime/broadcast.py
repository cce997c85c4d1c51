"""Operators of a stream that is connected to a broadcast one: rows on input 0, broadcast elements on input 1.

Every subtask gets every broadcast element, in one order, before the epoch's rows (see ``graph/planner.py``), and may
change broadcast state only then: so the state is the same on all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from holdfast.errors import StateAccessError, StateDescriptorError
from holdfast.runtime.batch import Batch
from holdfast.runtime.context import READ_ONLY_BROADCAST, OperatorStateStore
from holdfast.runtime.environment import OperatorEnvironment
from holdfast.runtime.keyed import KeyedProcessContext, KeyedProcessOperator, ProcessHosting
from holdfast.runtime.operator import Operator
from holdfast.runtime.plan import OperatorSpec
from holdfast.runtime.stateless import ProcessOperator, RowContext
from holdfast.runtime.timer_service import TimerService
from holdfast.state.broadcast_state import BroadcastState, ReadOnlyBroadcastState
from holdfast.state.descriptors import MapStateDescriptor, StateDescriptor

#: The input that broadcast elements come to.
BROADCAST_INPUT = 1


@dataclass(slots=True)
class _Entry:
    descriptor: MapStateDescriptor
    writable: BroadcastState
    read_only: ReadOnlyBroadcastState


class BroadcastStates:
    """The states whose descriptors were given to ``broadcast()``, for one subtask. Nothing else can be asked for."""

    def __init__(self, environment: OperatorEnvironment) -> None:
        self._where = environment.spec.describe(environment.subtask)
        self._entries: dict[str, _Entry] = {}
        store = OperatorStateStore(environment)
        for descriptor in environment.spec.broadcast_states:
            state = store.get_broadcast_state(descriptor)
            view = state.read_only(descriptor.name)
            environment.bindings[id(view)] = (READ_ONLY_BROADCAST, descriptor)
            self._entries[descriptor.name] = _Entry(descriptor, state, view)

    def writable(self, descriptor: MapStateDescriptor) -> BroadcastState:
        return self._entry(descriptor).writable

    def read_only(self, descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState:
        return self._entry(descriptor).read_only

    def _entry(self, descriptor: MapStateDescriptor) -> _Entry:
        entry = self._entries.get(getattr(descriptor, "name", ""))
        if entry is None or entry.descriptor is not descriptor:
            entry = self._checked(descriptor, entry)
        return entry

    def _checked(self, descriptor: MapStateDescriptor, entry: _Entry | None) -> _Entry:
        if not isinstance(descriptor, MapStateDescriptor):
            raise StateDescriptorError(
                f"{self._where}: get_broadcast_state() takes a MapStateDescriptor; got {descriptor!r}."
            )
        if entry is None:
            raise StateAccessError(
                f"{self._where}: the {descriptor.describe()} was not given to broadcast(), which was given "
                f"{', '.join(repr(name) for name in self._entries)}. Add its descriptor there: "
                "broadcast(descriptor, ...)."
            )
        if entry.descriptor != descriptor:
            raise StateDescriptorError(
                f"{self._where}: broadcast() was given the {entry.descriptor.describe()}, and get_broadcast_state() "
                f"the {descriptor.describe()}. Use one descriptor, or two names."
            )
        # The next row asks with the same object, most likely: then nothing has to be compared.
        entry.descriptor = descriptor
        return entry


class BroadcastTimes(RowContext):
    """What contexts of both sides have."""

    def __init__(self, operator: Operator, states: BroadcastStates) -> None:
        super().__init__()
        self._operator = operator
        self._states = states

    def current_processing_time(self) -> int:
        return self._operator.environment.clock()

    def current_watermark(self) -> int:
        return self._operator.watermark


class BroadcastContext(BroadcastTimes):
    """The context of ``process_broadcast_element``."""

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState:
        """A state whose descriptor was given to ``broadcast()``. Change it by the element alone: every subtask is given
        the same elements in the same order, and must come to the same state.
        """
        return self._states.writable(state_descriptor)


class ReadOnlyBroadcastContext(BroadcastTimes):
    """The context of ``process_element`` of a function on a stream without keys."""

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState:
        """A state whose descriptor was given to ``broadcast()``; it cannot be changed here."""
        return self._states.read_only(state_descriptor)


class KeyedBroadcastContext(BroadcastContext):
    """The context of ``process_broadcast_element`` of a function on a keyed stream."""

    _operator: KeyedProcessOperator

    def apply_to_keyed_state(self, state_descriptor: StateDescriptor, function: Callable[[Any, Any], Any]) -> None:
        """Call ``function(key, state)`` for every key of this subtask that has the state, in any order.

        What the function does to the state is done to that key's. It reads all keys: a broadcast element that does
        this costs as much as the state is large.
        """
        operator, what = self._operator, f"apply_to_keyed_state of '{state_descriptor.get_name()}'"

        def apply(key: Any, state: Any) -> None:
            try:
                function(key, state)
            except BaseException as error:
                raise operator.failure(error, what, key) from error

        operator.keyed_state.apply_to_all_keys(state_descriptor, apply)


class KeyedReadOnlyBroadcastContext(KeyedProcessContext, ReadOnlyBroadcastContext):
    """The context of ``process_element`` and ``on_timer`` of a function on a keyed stream."""

    def __init__(self, operator: KeyedProcessOperator, states: BroadcastStates, timers: TimerService) -> None:
        ReadOnlyBroadcastContext.__init__(self, operator, states)
        KeyedProcessContext.__init__(self, timers, operator.key_context)


class BroadcastProcessOperator(ProcessOperator):
    """A broadcast process function on a stream without keys."""

    def bind_state(self) -> None:
        super().bind_state()
        states = BroadcastStates(self.environment)
        self._read_only_context = ReadOnlyBroadcastContext(self, states)
        self._broadcast_context = BroadcastContext(self, states)

    def process(self, batch: Batch, input_index: int) -> None:
        if input_index == BROADCAST_INPUT:
            self.process_rows(batch, self.function.process_broadcast_element, self._broadcast_context)
        else:
            self.process_rows(batch, self.function.process_element, self._read_only_context)


class _BroadcastHosting(ProcessHosting):
    _broadcast_context: KeyedBroadcastContext

    def context(self, operator: KeyedProcessOperator, timers: TimerService) -> KeyedProcessContext:
        states = BroadcastStates(operator.environment)
        self._broadcast_context = KeyedBroadcastContext(operator, states)
        return KeyedReadOnlyBroadcastContext(operator, states, timers)

    def process(self, operator: KeyedProcessOperator, batch: Batch, input_index: int) -> None:
        if input_index == BROADCAST_INPUT:
            self._process_broadcast(operator, batch)
        else:
            super().process(operator, batch, input_index)

    def _process_broadcast(self, operator: KeyedProcessOperator, batch: Batch) -> None:
        function, context = operator.function.process_broadcast_element, self._broadcast_context
        timestamps = batch.timestamps or [None] * len(batch)
        watermarks = batch.watermarks or [operator.watermark] * len(batch)
        value = None
        try:
            for value, timestamp, watermark in zip(batch.values, timestamps, watermarks, strict=True):
                if watermark > operator.watermark:
                    operator.advance(watermark)
                # A broadcast element belongs to no key.
                operator.key_context.clear()
                context.current_timestamp = timestamp
                operator.emit(function(value, context), timestamp)
        except BaseException as error:
            raise operator.failure(error, value) from error
        operator.flush()


def keyed_broadcast_process_operator(spec: OperatorSpec) -> KeyedProcessOperator:
    """A broadcast process function on a keyed stream, with timers for the keys."""
    return KeyedProcessOperator(spec, _BroadcastHosting())
