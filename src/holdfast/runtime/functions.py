"""Operators that host a user's function: its life cycle, its contexts, its fields between epochs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import MemberDescriptorType
from typing import Any, ClassVar

from holdfast.errors import HoldfastError
from holdfast.runtime.batch import Batch
from holdfast.runtime.context import (
    FunctionInitializationContext,
    FunctionSnapshotContext,
    RuntimeContext,
    StateSnapshotContext,
)
from holdfast.runtime.contracts import WrappingFunction, call, initialize_state_of, snapshot_state_of
from holdfast.runtime.failures import function_failure
from holdfast.runtime.operator import Operator
from holdfast.runtime.plan import OperatorSpec
from holdfast.runtime.yielded import as_returned, as_yielded, copied, may_change


def method_of(function: Any, name: str) -> Callable[..., Any]:
    """The method of a function object, or the callable itself."""
    method: Callable[..., Any] | None = getattr(function, name, None)
    chosen: Callable[..., Any] = method if callable(method) else function
    return chosen


def _fields_of(function: Any) -> dict[str, Any]:
    """What it holds in attributes, those with ``__slots__`` included."""
    held: Any = object.__getstate__(function)
    attributes, slots = held if isinstance(held, tuple) else (held, None)
    return {**(attributes or {}), **(slots or {})}


def _set_field(function: Any, name: str, value: Any) -> None:
    if isinstance(getattr(type(function), name, None), MemberDescriptorType):
        object.__setattr__(function, name, value)
    else:
        function.__dict__[name] = value


class FunctionOperator(Operator):
    """Hosts one user function, which may be rich, checkpointed, a checkpoint listener, all or nothing of it."""

    #: The method of a function object that rows are given to.
    row_method: ClassVar[str] = ""
    #: The class of what its ``open`` is given.
    context_class: ClassVar[type[RuntimeContext]] = RuntimeContext

    def __init__(self, spec: OperatorSpec) -> None:
        super().__init__(spec)
        self.function = self.body
        #: Its rows can be changed in place, so they are copied when the function gives them.
        self._copies = may_change(spec)
        self.runtime_context: RuntimeContext
        #: Fields that only ``initialize_state`` made: where one cannot travel, nothing can make it again as it was.
        self.made_from_state: frozenset[str] = frozenset()

    def bind_state(self) -> None:
        self.runtime_context = self.context_class(self.environment)
        call(self.function, "set_runtime_context", self.runtime_context)

    def row_function(self, input_index: int) -> Callable[..., Any]:
        """What the rows of an input are given to."""
        return method_of(self.function, self.row_method)

    def yielding(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A method that yields rows, which stay as they were when it yielded them."""
        return as_yielded(function) if self._copies else function

    def returning(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A method that returns a row, which stays as it was then."""
        return as_returned(function) if self._copies else function

    def yielded(self, results: Iterable[Any]) -> Iterable[Any]:
        """What a method yields, each row as it was then."""
        return map(copied, results) if self._copies else results

    def initialize_state(self) -> None:
        before = self.function_fields()
        with self._reported("initialize_state"):
            initialize_state_of(self.function, self.initialization_context())
        self.made_from_state = self._changed_since(before)

    def initialization_context(self) -> FunctionInitializationContext:
        return FunctionInitializationContext(self.environment)

    def open(self) -> None:
        before = self.function_fields()
        self._call("open", self.runtime_context)
        self.made_from_state -= self._changed_since(before)

    def prepare_snapshot(self, checkpoint_id: int) -> None:
        self._emit_rows("prepare_snapshot_pre_barrier", checkpoint_id)

    def snapshot_state(self, context: StateSnapshotContext) -> None:
        with self._reported("snapshot_state"):
            snapshot_state_of(self.function, self.snapshot_context(context))

    def snapshot_context(self, context: StateSnapshotContext) -> FunctionSnapshotContext:
        """What of it the function is given."""
        return context.for_function()

    def notify_complete(self, checkpoint_id: int) -> None:
        self._call("notify_checkpoint_complete", checkpoint_id)

    def notify_aborted(self, checkpoint_id: int) -> None:
        self._call("notify_checkpoint_aborted", checkpoint_id)

    def finish(self) -> None:
        self._emit_rows("finish")

    def close(self) -> None:
        self._call("close")

    def _emit_rows(self, name: str, *arguments: Any) -> None:
        """Hand on what a call of the life cycle gives."""
        with self._reported(name):
            rows = list(self.yielded(call(self.function, name, *arguments) or ()))
        self.emit_untimed(rows)

    def emit_untimed(self, rows: list[Any]) -> None:
        """Hand on rows that have no event time of their own."""
        if not self.spec.event_time:
            self.output.collect(Batch(list(rows)))
            return
        self.output.collect(Batch(list(rows), [None] * len(rows), [self.watermark] * len(rows)))

    def _call(self, name: str, *arguments: Any) -> Any:
        with self._reported(name):
            return call(self.function, name, *arguments)

    @contextmanager
    def _reported(self, name: str) -> Iterator[None]:
        """Stands around every call of the life cycle: an error says where it was raised."""
        self.leave_row()
        try:
            yield
        except HoldfastError as error:
            error.at(operator_id=self.spec.operator_id)
            if self.where not in str(error):
                error.at(operator=self.where)
            raise
        except BaseException as error:
            said = f"{name}() raised {type(error).__name__}: {error}"
            raise function_failure(said, error).at(operator=self.where, operator_id=self.spec.operator_id) from error

    def leave_row(self) -> None:
        """No row is at hand for what is called next."""

    def function_fields(self) -> dict[str, Any]:
        """The fields of the function, and of those that it wraps: each may have one that stays behind."""
        fields: dict[str, Any] = {}
        for path, function in self._paths():
            fields |= {path + name: value for name, value in _fields_of(function).items()}
            if isinstance(function, WrappingFunction):
                fields.pop(f"{path}wrapped_function", None)
        return fields

    def _changed_since(self, before: dict[str, Any]) -> frozenset[str]:
        missing = object()
        now = self.function_fields()
        return frozenset(name for name, value in now.items() if value is not before.get(name, missing))

    def adopt_function_fields(self, fields: dict[str, Any]) -> None:
        for path, function in self._paths():
            for name in [name for name in fields if name.rpartition(".")[0] == path[:-1]]:
                _set_field(function, name.removeprefix(path), fields[name])

    def functions(self) -> list[Any]:
        """The function and what it wraps."""
        return [function for _, function in self._paths()]

    def _paths(self) -> Iterator[tuple[str, Any]]:
        """The function and what it wraps, each with the path under which its fields are known."""
        path, function = "", self.function
        yield path, function
        while isinstance(function, WrappingFunction):
            path, function = f"{path}wrapped_function.", function.wrapped_function
            yield path, function
