"""Operators that host a user's function: its life cycle, its contexts, its fields between epochs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.errors import FunctionError, HoldfastError
from holdfast.runtime.context import FunctionInitializationContext, FunctionSnapshotContext, RuntimeContext
from holdfast.runtime.operator import Operator
from holdfast.runtime.plan import OperatorSpec


def method_of(function: Any, name: str) -> Callable[..., Any]:
    """The method of a function object, or the callable itself."""
    method: Callable[..., Any] | None = getattr(function, name, None)
    chosen: Callable[..., Any] = method if callable(method) else function
    return chosen


class FunctionOperator(Operator):
    """Hosts one user function, which may be rich, checkpointed, a checkpoint listener, all or nothing of it."""

    def __init__(self, spec: OperatorSpec) -> None:
        super().__init__(spec)
        self.function = self.body
        self.runtime_context: RuntimeContext

    def bind_state(self) -> None:
        self.runtime_context = RuntimeContext(self.environment)

    def initialize_state(self) -> None:
        self._call("initialize_state", FunctionInitializationContext(self.environment))

    def open(self) -> None:
        self._call("open", self.runtime_context)

    def prepare_snapshot(self, checkpoint_id: int) -> None:
        self._call("prepare_snapshot_pre_barrier", checkpoint_id)

    def snapshot_state(self, checkpoint_id: int, timestamp: int) -> None:
        self._call("snapshot_state", FunctionSnapshotContext(checkpoint_id, timestamp))

    def notify_complete(self, checkpoint_id: int) -> None:
        self._call("notify_checkpoint_complete", checkpoint_id)

    def notify_aborted(self, checkpoint_id: int) -> None:
        self._call("notify_checkpoint_aborted", checkpoint_id)

    def finish(self) -> None:
        self._call("finish")

    def close(self) -> None:
        self._call("close")

    def _call(self, name: str, *arguments: Any) -> Any:
        method = getattr(self.function, name, None)
        if not callable(method):
            return None
        try:
            return method(*arguments)
        except Exception as error:
            raise self.lifecycle_failure(error, name) from error

    def lifecycle_failure(self, error: Exception, name: str) -> Exception:
        if isinstance(error, HoldfastError):
            return error
        return FunctionError(f"{self.where}: {name}() raised {type(error).__name__}: {error}")

    def function_fields(self) -> dict[str, Any]:
        return dict(getattr(self.function, "__dict__", {}))

    def adopt_function_fields(self, fields: dict[str, Any]) -> None:
        if fields:
            self.function.__dict__.update(fields)
