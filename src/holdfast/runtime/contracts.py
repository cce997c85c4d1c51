"""What all functions may implement: Flink's life cycle, operator state, and news of checkpoints.

A function is any object with the method of its kind (``map``, ``read``, ``write``...). The operator that hosts it calls
what it finds of the methods below; the classes are their contracts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from holdfast.coverage.answers import SaysWhatToUse
from holdfast.errors import ProgramError, RestoreError
from holdfast.state.descriptors import ListStateDescriptor
from holdfast.types.resolve import resolve
from holdfast.types.typeinfo import TupleTypeInfo, TypeInformation, Types

if TYPE_CHECKING:
    from holdfast.runtime.context import FunctionInitializationContext, FunctionSnapshotContext, RuntimeContext

#: Where the older contracts keep their elements: Flink's name.
_DEFAULT_STATE = "_default_"


class Function(SaysWhatToUse, ABC):
    """The life cycle that all functions share. One object per subtask lives for an attempt, as in Flink."""

    _runtime_context: RuntimeContext | None = None

    def open(self, runtime_context: RuntimeContext) -> None:
        """Called once per attempt in a Spark task, before the first row; again only where a field could not be
        pickled.
        """

    def close(self) -> None:
        """Called once when the attempt ends in order; not after a crash."""

    def set_runtime_context(self, runtime_context: RuntimeContext) -> None:
        """Called by the operator before anything else."""
        self._runtime_context = runtime_context

    def get_runtime_context(self) -> RuntimeContext:
        """What ``open`` is given, from ``initialize_state`` on."""
        if self._runtime_context is None:
            raise ProgramError(
                f"{type(self).__name__} asked for its runtime context before it had one: it runs in tasks, not where "
                "the program is written. Ask for it in initialize_state() or later."
            )
        return self._runtime_context


class CheckpointedFunction(ABC):
    """A function with state of its own subtask, not of a key."""

    @abstractmethod
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        """Called once per attempt before ``open``, on a fresh start too: declare operator state and take what was
        restored.
        """

    @abstractmethod
    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        """Called for every checkpoint, after the last row before its barrier: write to the declared state."""


class CheckpointListener:
    """Told of the fate of checkpoints, with the epoch after it. Best effort: a notification may never come."""

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None: ...

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None: ...


class _OlderCheckpointed(ABC):
    """What Flink had before ``CheckpointedFunction``: state as a value that the function gives away and gets back."""

    #: The type of what the function gives away, anything that ``holdfast.types.resolve`` takes. None: it is pickled.
    checkpointed_type: Any = None

    def take_up(self, context: FunctionInitializationContext) -> None:
        """In the place of ``initialize_state``."""
        self._stored = context.get_operator_state_store().get_list_state(self._descriptor())
        if context.is_restored():
            self.restore_elements(self._stored.get(), context)

    def write_down(self, context: FunctionSnapshotContext) -> None:
        """In the place of ``CheckpointedFunction.snapshot_state``."""
        self._stored.update(self.elements(context))

    def _descriptor(self) -> ListStateDescriptor:
        """Version 0 is pickled."""
        declared = self.element_type()
        descriptor = ListStateDescriptor(_DEFAULT_STATE, declared)
        return descriptor if declared.pickled else descriptor.migrate_from(0, _unchanged)

    def element_type(self) -> TypeInformation:
        return resolve(self.checkpointed_type)

    @abstractmethod
    def restore_elements(self, elements: list[Any], context: FunctionInitializationContext) -> None: ...

    @abstractmethod
    def elements(self, context: FunctionSnapshotContext) -> list[Any]: ...


def _unchanged(value: Any) -> Any:
    return value


class ListCheckpointed(_OlderCheckpointed):
    """Flink's older contract of a list that is split when the parallelism changes. Elements are of the
    ``checkpointed_type``.
    """

    @abstractmethod
    def snapshot_state(self, checkpoint_id: int, timestamp: int) -> list[Any]:
        """Called for every checkpoint: the elements of this subtask."""

    @abstractmethod
    def restore_state(self, state: list[Any]) -> None:
        """Called before ``open`` where the job was restored: the elements that are now this subtask's."""

    def restore_elements(self, elements: list[Any], context: FunctionInitializationContext) -> None:
        self.restore_state(elements)

    def elements(self, context: FunctionSnapshotContext) -> list[Any]:
        return list(self.snapshot_state(context.get_checkpoint_id(), context.get_checkpoint_timestamp()) or ())


class Checkpointed(_OlderCheckpointed):
    """Flink's oldest contract: one value of the subtask, which must keep its parallelism. The value is of the
    ``checkpointed_type``.
    """

    @abstractmethod
    def snapshot_state(self, checkpoint_id: int, checkpoint_timestamp: int) -> Any:
        """Called for every checkpoint: the state of this subtask, or None."""

    @abstractmethod
    def restore_state(self, state: Any) -> None:
        """Called before ``open`` where this subtask was restored and had state."""

    def take_up(self, context: FunctionInitializationContext) -> None:
        self._parallelism = context.environment.spec.parallelism
        super().take_up(context)

    def element_type(self) -> TypeInformation:
        declared = super().element_type()
        return declared if declared.pickled else TupleTypeInfo([Types.INT(), declared], ["parallelism", "state"])

    def restore_elements(self, elements: list[Any], context: FunctionInitializationContext) -> None:
        for parallelism, state in elements:
            if parallelism != self._parallelism:
                raise RestoreError(
                    f"{context.environment.where}: its Checkpointed state was written with parallelism {parallelism}, "
                    f"and the operator now has {self._parallelism}. One value per subtask cannot be divided: keep the "
                    "parallelism, or implement ListCheckpointed or CheckpointedFunction."
                )
            self.restore_state(state)

    def elements(self, context: FunctionSnapshotContext) -> list[Any]:
        state = self.snapshot_state(context.get_checkpoint_id(), context.get_checkpoint_timestamp())
        return [] if state is None else [(self._parallelism, state)]


class WrappingFunction(Function):
    """A function around another one, to which it passes all calls of the life cycle on.

    A subclass adds the method of its kind. Where it overrides one of the methods below, it calls ``super()``.
    """

    def __init__(self, wrapped_function: Any) -> None:
        self.wrapped_function = wrapped_function

    def get_wrapped_function(self) -> Any:
        return self.wrapped_function

    def set_runtime_context(self, runtime_context: RuntimeContext) -> None:
        super().set_runtime_context(runtime_context)
        call(self.wrapped_function, "set_runtime_context", runtime_context)

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        initialize_state_of(self.wrapped_function, context)

    def open(self, runtime_context: RuntimeContext) -> None:
        call(self.wrapped_function, "open", runtime_context)

    def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> Iterable[Any] | None:
        rows: Iterable[Any] | None = call(self.wrapped_function, "prepare_snapshot_pre_barrier", checkpoint_id)
        return rows

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        snapshot_state_of(self.wrapped_function, context)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        call(self.wrapped_function, "notify_checkpoint_complete", checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        call(self.wrapped_function, "notify_checkpoint_aborted", checkpoint_id)

    def finish(self) -> Iterable[Any] | None:
        rows: Iterable[Any] | None = call(self.wrapped_function, "finish")
        return rows

    def close(self) -> None:
        call(self.wrapped_function, "close")


def call(function: Any, name: str, *arguments: Any) -> Any:
    """Call a method that the function need not have."""
    method = getattr(function, name, None)
    return method(*arguments) if callable(method) else None


def initialize_state_of(function: Any, context: FunctionInitializationContext) -> None:
    """``initialize_state``, whichever contract of state the function has."""
    if isinstance(function, _OlderCheckpointed):
        function.take_up(context)
    else:
        call(function, "initialize_state", context)


def snapshot_state_of(function: Any, context: FunctionSnapshotContext) -> None:
    """``snapshot_state``, whichever contract of state the function has."""
    if isinstance(function, _OlderCheckpointed):
        function.write_down(context)
    else:
        call(function, "snapshot_state", context)


def has_operator_state(function: Any) -> bool:
    """Whether a function, or one that it wraps, has a contract of operator state, so that it must be hosted by an
    operator.
    """
    while isinstance(function, WrappingFunction):
        function = function.wrapped_function
    return isinstance(function, CheckpointedFunction | _OlderCheckpointed)
