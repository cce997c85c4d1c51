"""All subtasks of an operator under test, as one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from holdfast.runtime.output_tag import OutputTag
from holdfast.state.descriptors import StateDescriptor
from holdfast.testing.assertions import check_content
from holdfast.testing.snapshot import HarnessSnapshot

if TYPE_CHECKING:
    from holdfast.testing.harness import Harness

H = TypeVar("H", bound="Harness")


class Subtasks(Sequence[H], Generic[H]):
    """The harnesses of all subtasks, in their order. Rows go where a job would send them: to the subtask that owns
    their key, or to one after the other where there are no keys. Time goes on in all of them, and what comes out is the
    output of the first, then that of the second, and so on.
    """

    def __init__(self, harnesses: Iterable[H]) -> None:
        self._harnesses: list[Any] = list(harnesses)
        self._next = 0

    def __len__(self) -> int:
        return len(self._harnesses)

    def __getitem__(self, index: Any) -> Any:
        return self._harnesses[index]

    def __iter__(self) -> Iterator[H]:
        return iter(self._harnesses)

    # -- input

    def push(self, value: Any, timestamp: int | None = None) -> Self:
        """One row, to the subtask that it belongs to."""
        self._owner(value).push(value, timestamp)
        return self

    def push_all(self, values: Iterable[Any], timestamps: Sequence[int | None] | None = None) -> Self:
        """Several rows: to each subtask those that belong to it, in one batch."""
        batches: dict[int, tuple[list[Any], list[int | None]]] = defaultdict(lambda: ([], []))
        rows = list(values)
        for value, timestamp in zip(rows, timestamps or [None] * len(rows), strict=True):
            mine, times = batches[self._harnesses.index(self._owner(value))]
            mine.append(value)
            times.append(timestamp)
        for index, (mine, times) in batches.items():
            self._harnesses[index].push_all(mine, None if timestamps is None else times)
        return self

    def push1(self, value: Any, timestamp: int | None = None) -> Self:
        """One row of the first of two streams."""
        self._owner(value).push1(value, timestamp)
        return self

    def push2(self, value: Any, timestamp: int | None = None) -> Self:
        """One row of the second of two streams."""
        self._owner(value, 1).push2(value, timestamp)
        return self

    def push_broadcast(self, value: Any, timestamp: int | None = None) -> Self:
        """One broadcast element, which every subtask sees."""
        return self._each("push_broadcast", value, timestamp)

    def push_all_broadcast(self, values: Iterable[Any], timestamps: Sequence[int | None] | None = None) -> Self:
        """Several broadcast elements, in one batch."""
        return self._each("push_all_broadcast", list(values), timestamps)

    def advance_watermark(self, timestamp: int) -> Self:
        return self._each("advance_watermark", timestamp)

    def advance_processing_time(self, milliseconds: int) -> Self:
        """Move the clock, which they may share, on by so much."""
        moved: set[int] = set()
        for harness in self._harnesses:
            harness.advance_processing_time(0 if id(harness.clock) in moved else milliseconds)
            moved.add(id(harness.clock))
        return self

    def end_epoch(self) -> Self:
        return self._each("end_epoch")

    def end_input(self) -> Self:
        return self._each("end_input")

    # -- output and state

    def output(self) -> list[Any]:
        return [row for harness in self._harnesses for row in harness.output()]

    def take_output(self) -> list[Any]:
        return [row for harness in self._harnesses for row in harness.take_output()]

    def side_output(self, output_tag: OutputTag) -> list[Any]:
        return [row for harness in self._harnesses for row in harness.side_output(output_tag)]

    def state(self, descriptor: StateDescriptor, key: Any) -> Any:
        """The state of a key, on the subtask that owns it."""
        (owner,) = (harness for harness in self._harnesses if harness.owns_key(key))
        return owner.state(descriptor, key)

    def states(self, descriptor: StateDescriptor) -> dict[Any, Any]:
        """The state of every key that has it."""
        return {key: value for harness in self._harnesses for key, value in harness.states(descriptor).items()}

    def assert_state(self, descriptor: StateDescriptor, expected: Mapping[Any, Any]) -> Self:
        """AssertionError, with both sides, unless exactly these keys have the state, on whatever subtask, with these
        contents.
        """
        what = f"State '{descriptor.get_name()}' of {len(self)} subtasks"
        check_content(what, dict(expected), self.states(descriptor))
        return self

    # -- snapshots

    def snapshot(self) -> HarnessSnapshot:
        """One of all of them."""
        return HarnessSnapshot.merged([harness.snapshot() for harness in self._harnesses])

    def restored(self, snapshot: HarnessSnapshot | None = None, function: Any = None, **changes: Any) -> Subtasks[H]:
        """As many subtasks, from a snapshot that is taken now or from an earlier one. These are dropped."""
        return self.rescaled(len(self), snapshot, function, **changes)

    def rescaled(
        self, parallelism: int, snapshot: HarnessSnapshot | None = None, function: Any = None, **changes: Any
    ) -> Subtasks[H]:
        """The subtasks of another parallelism, each with its share. These are dropped."""
        taken = self.snapshot() if snapshot is None else snapshot
        for harness in self._harnesses:
            harness._drop()
        found: Subtasks[H] = self._harnesses[0]._all(taken, parallelism, function, changes)
        return found

    # -- the end

    def open(self) -> Self:
        return self._each("open")

    def close(self) -> None:
        self.__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # All of them, also where one raises.
        with ExitStack() as stack:
            for harness in reversed(self._harnesses):
                stack.callback(harness.__exit__, kind, error, trace)

    def _each(self, method: str, *arguments: Any) -> Self:
        for harness in self._harnesses:
            getattr(harness, method)(*arguments)
        return self

    def _owner(self, value: Any, input_index: int = 0) -> Any:
        if hasattr(self._harnesses[0], "owns"):
            return next(harness for harness in self._harnesses if harness.owns(value, input_index))
        self._next += 1
        return self._harnesses[(self._next - 1) % len(self._harnesses)]
