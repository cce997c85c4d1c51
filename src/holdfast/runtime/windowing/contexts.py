"""What triggers, evictors and window functions are given."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from holdfast.errors import StateAccessError
from holdfast.runtime.context import KeyedStateStore
from holdfast.runtime.metrics import MetricGroup
from holdfast.runtime.windowing.evictors import EvictorContext
from holdfast.runtime.windowing.trigger_contexts import OnMergeContext
from holdfast.state.descriptors import StateDescriptor
from holdfast.state.keyed_backend import KeyedStateBackend
from holdfast.state.keyed_state import MergingNamespaces

if TYPE_CHECKING:
    from holdfast.runtime.windowing.operator import WindowOperator

W = TypeVar("W")

#: Before the names of states that a window has for itself.
PER_WINDOW = "window"


class WindowStates:
    """States with windows as namespaces. ``prefix`` keeps their names apart from those of other states."""

    def __init__(self, keyed_state: KeyedStateBackend, prefix: str, window_type: Any) -> None:
        self._keyed_state = keyed_state
        self._prefix = prefix
        self._window_type = window_type
        self._bound: dict[str, tuple[StateDescriptor, Any]] = {}

    def get(self, descriptor: StateDescriptor, namespace: Any) -> Any:
        """The state of a descriptor, working on a window from now on."""
        name = descriptor.get_name()
        bound = self._bound.get(name)
        if bound is None or bound[0] is not descriptor:
            renamed = copy.copy(descriptor)
            renamed.name = f"{self._prefix}/{name}"
            bound = self._bound[name] = (descriptor, self._keyed_state.state(renamed, self._window_type))
        state = bound[1]
        state.set_current_namespace(namespace)
        return state


class WindowTriggerContext(OnMergeContext, EvictorContext):
    """The operator sets the window, and before ``on_merge`` the windows that were merged into it."""

    def __init__(self, operator: WindowOperator) -> None:
        windows = operator.windows
        self._operator = operator
        self._namespace = windows.namespace
        self._states = WindowStates(operator.keyed_state, "trigger", windows.type_info)
        self.window: Any = None
        self.merged: list[Any] = []

    def get_current_processing_time(self) -> int:
        return self._operator.processing_time()

    def get_current_watermark(self) -> int:
        return self._operator.watermark

    def register_event_time_timer(self, time: int) -> None:
        self._operator.event_timers.register(time, self.window)

    def register_processing_time_timer(self, time: int) -> None:
        self._operator.processing_timers.register(time, self.window)

    def delete_event_time_timer(self, time: int) -> None:
        self._operator.event_timers.delete(time, self.window)

    def delete_processing_time_timer(self, time: int) -> None:
        self._operator.processing_timers.delete(time, self.window)

    def get_partitioned_state(self, state_descriptor: StateDescriptor) -> Any:
        return self._states.get(state_descriptor, self._namespace(self.window))

    def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
        target = self._namespace(self.window)
        state = self._states.get(state_descriptor, target)
        if not isinstance(state, MergingNamespaces):
            raise StateAccessError(
                f"{self._operator.where}: the trigger merges the {state_descriptor.describe()}. Only list, reducing "
                "and aggregating state of several windows can be made one."
            )
        state.merge_namespaces(target, [self._namespace(window) for window in self.merged])

    def get_metric_group(self) -> MetricGroup:
        return self._operator.environment.metrics.group()


class _PerWindowStateStore(KeyedStateStore):
    """State of the current key and window. What is put there must be removed in ``clear``."""

    def __init__(self, operator: WindowOperator) -> None:
        super().__init__(operator.environment)
        self._namespace = operator.windows.namespace
        self._states = WindowStates(operator.keyed_state, PER_WINDOW, operator.windows.type_info)
        self.window: Any = None

    def _get(self, descriptor: StateDescriptor) -> Any:
        return self._states.get(descriptor, self._namespace(self.window))


class _NoPerWindowState(_PerWindowStateStore):
    def _get(self, descriptor: StateDescriptor) -> NoReturn:
        raise StateAccessError(
            f"{self._environment.where} asks for the {descriptor.describe()} per window. Windows that merge cannot "
            "have it: nothing says how states of two windows merge. Use global_state()."
        )


class WindowContext(Generic[W]):
    """The context of window functions: the window, the times, and state of the window and of the key."""

    def __init__(self, operator: WindowOperator, merging: bool) -> None:
        self._operator = operator
        self._window: Any = None
        self._window_state = (_NoPerWindowState if merging else _PerWindowStateStore)(operator)
        self._global_state = KeyedStateStore(operator.environment)

    def at(self, window: Any) -> WindowContext[Any]:
        """The context for a window."""
        self._window = self._window_state.window = window
        return self

    def window(self) -> W:
        window: W = self._window
        return window

    def current_processing_time(self) -> int:
        return self._operator.processing_time()

    def current_watermark(self) -> int:
        return self._operator.watermark

    def window_state(self) -> KeyedStateStore:
        """State of this key and window. Remove it in ``clear``."""
        return self._window_state

    def global_state(self) -> KeyedStateStore:
        """State of this key, which all its windows share."""
        return self._global_state
