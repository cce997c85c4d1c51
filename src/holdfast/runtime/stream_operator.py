"""Operators that users write: all that a process function can, and raw state beside it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from holdfast.runtime.context import (
    FunctionInitializationContext,
    FunctionSnapshotContext,
    StateInitializationContext,
    StateSnapshotContext,
)
from holdfast.runtime.contracts import CheckpointListener, Function
from holdfast.runtime.environment import OperatorEnvironment
from holdfast.runtime.keyed import KeyedProcessContext, KeyedProcessOperator, ProcessHosting
from holdfast.runtime.plan import OperatorSpec
from holdfast.runtime.stateless import ProcessOperator
from holdfast.runtime.timer_service import TimerService
from holdfast.state.keygroups import key_group


class StreamOperator(Function, CheckpointListener):
    """An operator for ``DataStream.transform``. All methods but ``process_element`` may be left out.

    Calls come from one thread: ``initialize_state``, ``open``, then rows and timers, and for each checkpoint
    ``prepare_snapshot_pre_barrier`` and ``snapshot_state``; ``finish`` at the end of the input, ``close`` last. Fields
    live for the attempt, as those of functions do.
    """

    @abstractmethod
    def process_element(self, value: Any, ctx: Any) -> Iterable[Any] | None:
        """Any number of rows for one row. Behind a ``key_by`` ``ctx`` is a KeyedProcessFunction's, and has
        ``get_current_key_group()``; elsewhere it is a ProcessFunction's.
        """

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any] | None:
        """A timer of the current key is due."""
        return None

    def initialize_state(self, context: StateInitializationContext) -> None:
        """Called once per attempt before ``open``, on a fresh start too. Restored raw state must be asked for here."""

    def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> Iterable[Any] | None:
        """A checkpoint comes next. Rows that are given go out before its barrier; whatever is slow and can be given
        away now need not be in the snapshot.
        """
        return None

    def snapshot_state(self, context: StateSnapshotContext) -> None:
        """Called for every checkpoint, after its barrier was sent: write to managed and to raw state."""

    def finish(self) -> Iterable[Any] | None:
        """The input has ended: the last rows."""
        return None


class StreamOperatorHost(ProcessOperator):
    """Runs a user's operator on a stream without keys: it gets the contexts of operators, where functions get theirs.
    """

    def initialization_context(self) -> FunctionInitializationContext:
        return StateInitializationContext(self.environment)

    def snapshot_context(self, context: StateSnapshotContext) -> FunctionSnapshotContext:
        return context


class KeyedOperatorContext(KeyedProcessContext):
    """The context of operators behind a ``key_by``."""

    def __init__(self, operator: KeyedProcessOperator, timers: TimerService) -> None:
        super().__init__(timers, operator.key_context)
        self._scope = operator.keyed_state.scope

    def get_current_key_group(self) -> int:
        """The key group of the current key: where its raw state belongs."""
        return key_group(int(self._scope.key_codec.hash(self._key_context.key)), self._scope.max_parallelism)


class _OperatorHosting(ProcessHosting):
    def context(self, operator: KeyedProcessOperator, timers: TimerService) -> KeyedProcessContext:
        return KeyedOperatorContext(operator, timers)

    def initialization_context(self, environment: OperatorEnvironment) -> FunctionInitializationContext:
        return StateInitializationContext(environment)

    def snapshot_context(self, context: StateSnapshotContext) -> FunctionSnapshotContext:
        return context


def keyed_stream_operator_host(spec: OperatorSpec) -> KeyedProcessOperator:
    """Runs a user's operator behind a ``key_by``."""
    return KeyedProcessOperator(spec, _OperatorHosting())
