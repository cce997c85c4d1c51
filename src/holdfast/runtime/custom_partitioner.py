"""``partition_custom``: a user's function says which subtask a row goes to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from holdfast.errors import FunctionError
from holdfast.runtime.batch import Batch
from holdfast.runtime.contracts import call
from holdfast.runtime.failures import function_failure
from holdfast.runtime.functions import method_of
from holdfast.runtime.partitioners import BoundPartitioner, Partitioner, Route

if TYPE_CHECKING:
    from holdfast.runtime.context import RuntimeContext


@dataclass(frozen=True)
class Custom(Partitioner):
    """``partitioner`` has or is ``(key, number of subtasks) -> subtask``, ``selector`` gives the key of a row."""

    partitioner: Any
    selector: Any
    name = "CUSTOM"

    def bind(self, subtask: int, parallelism: int, where: str) -> BoundPartitioner:
        return _ByFunction(self.partitioner, self.selector, parallelism, where)

    def functions(self) -> dict[str, Any]:
        return {"partitioner": self.partitioner, "key selector of the partitioner": self.selector}


class _ByFunction(BoundPartitioner):
    def __init__(self, partitioner: Any, selector: Any, parallelism: int, where: str) -> None:
        self._functions = (partitioner, selector)
        self._partition: Callable[[Any, int], int] = method_of(partitioner, "partition")
        self._key_of: Callable[[Any], Any] = method_of(selector, "get_key")
        self._parallelism = parallelism
        self._where = where

    def open(self, runtime_context: RuntimeContext) -> None:
        self._call("set_runtime_context", runtime_context)
        self._call("open", runtime_context)

    def close(self) -> None:
        self._call("close")

    def route(self, batch: Batch, columns: pa.RecordBatch) -> Route:
        partition, key_of, parallelism = self._partition, self._key_of, self._parallelism
        targets: list[int] = []
        value: Any = None
        try:
            for value in batch.values:
                targets.append(partition(key_of(value), parallelism))
        except BaseException as error:
            said = f"the custom partitioner raised {type(error).__name__}: {error}"
            raise function_failure(said, error).at(operator=self._where, row=repr(value)) from error
        found = np.array(targets)
        if found.dtype.kind not in "iu" or found.min() < 0 or found.max() >= parallelism:
            raise self._no_subtask(targets, batch)
        return Route(found.astype(np.int64))

    def _no_subtask(self, targets: list[Any], batch: Batch) -> FunctionError:
        subtasks = range(self._parallelism)
        answer, row = next(
            (target, row)
            for target, row in zip(targets, batch.values, strict=True)
            if type(target) is not int or target not in subtasks
        )
        return FunctionError(
            f"{self._where}: the custom partitioner gave {answer!r} for row {row!r}; expected a number from 0 to "
            f"{self._parallelism - 1}."
        )

    def _call(self, name: str, *arguments: Any) -> None:
        for function in self._functions:
            with self._reported(name):
                call(function, name, *arguments)

    @contextmanager
    def _reported(self, name: str) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            said = f"{name}() of the custom partitioner raised {type(error).__name__}: {error}"
            raise function_failure(said, error).at(operator=self._where) from error
