"""The contents of windows in the state of an operator."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

from holdfast.runtime.batch import Batch
from holdfast.runtime.event_times import Numbers
from holdfast.runtime.windowing.evictors import Evictor, TimestampedValue
from holdfast.runtime.windowing.folding import Groups
from holdfast.runtime.windowing.keys_of_batch import KeysOfBatch
from holdfast.state.descriptors import StateDescriptor

if TYPE_CHECKING:
    from holdfast.runtime.windowing.operator import WindowOperator


def with_time(value: Any, timestamp: int | None) -> tuple[Any, int | None]:
    """A row and its time, where contents are made of both."""
    return value, timestamp


class WindowContents(ABC):
    """The contents of the current key's window that is the current namespace of ``state``."""

    #: What is stored of a row and its time, where that is not the row.
    stored: Callable[[Any, int | None], Any] | None = None

    def __init__(self, operator: WindowOperator, descriptor: StateDescriptor, owned: bool = False) -> None:
        #: Rows are added to it.
        self.state: Any = operator.keyed_state.state(descriptor, operator.windows.type_info, owned=owned)
        self._operator = operator
        self._call_function = operator.call_function

    @abstractmethod
    def fire(self, window: Any, keep: bool) -> None:
        """Give them to the function, if there are any. ``keep``: they are needed again."""


class EvictedContents(WindowContents):
    """All rows with their times. The evictor removes rows before and after the function sees those that are left."""

    stored = staticmethod(with_time)

    def __init__(self, operator: WindowOperator, descriptor: StateDescriptor, evictor: Evictor, timed: bool) -> None:
        """``timed``: the function is given rows with their times."""
        super().__init__(operator, descriptor)
        self._evictor = evictor
        self._timed = timed

    def fire(self, window: Any, keep: bool) -> None:
        elements = [TimestampedValue(*stored) for stored in self.state.get()]
        if not elements:
            return
        evictor, context, before = self._evictor, self._operator.trigger_context, len(elements)
        evictor.evict_before(elements, before, window, context)
        self._call_function(window, elements if self._timed else [element.value for element in elements])
        evictor.evict_after(elements, len(elements), window, context)
        if keep and len(elements) < before:
            self.state.update([tuple(element) for element in elements])


class BatchContents(WindowContents):
    """Contents that the rows of a batch can be put into together, each window of a key being touched once."""

    @abstractmethod
    def kept_many(self, identities: list[Hashable], keys: list[Any]) -> list[Any]:
        """What is kept of several keys before rows come to it; None for nothing."""

    @abstractmethod
    def keep_many(self, identities: list[Hashable], keys: list[Any], kept: list[Any]) -> None:
        """What became of it."""

    @abstractmethod
    def is_absent(self, identity: Hashable) -> bool:
        """Whether the state surely had nothing of a key."""

    @abstractmethod
    def folded_groups(
        self, batch: Batch, keys: KeysOfBatch, groups: Groups, rows: Numbers, before: list[Any]
    ) -> list[Any]:
        """What is kept of each group, of what was kept before and of its rows, in their order."""

    @abstractmethod
    def elements_of(self, kept: Any, shared: bool) -> list[Any]:
        """What the function sees of it; nothing where it is not called. ``shared``: rows are in other windows too."""


class ListedContents(BatchContents):
    """All rows. What the state has of a window is not read before it fires: rows are added."""

    def fire(self, window: Any, keep: bool) -> None:
        elements = self.state.get()
        if elements:
            self._call_function(window, elements)

    def kept_many(self, identities: list[Hashable], keys: list[Any]) -> list[Any]:
        return [None] * len(keys)

    def keep_many(self, identities: list[Hashable], keys: list[Any], kept: list[Any]) -> None:
        context, state = self._operator.key_context, self.state
        for context.identity, context.key, rows in zip(identities, keys, kept, strict=True):
            state.add_all(rows)

    def is_absent(self, identity: Hashable) -> bool:
        return False

    def folded_groups(
        self, batch: Batch, keys: KeysOfBatch, groups: Groups, rows: Numbers, before: list[Any]
    ) -> list[Any]:
        values, (in_groups, ends) = batch.values, groups.in_order(rows)
        members = [values[row] for row in in_groups]
        return [members[start:end] for start, end in zip([0, *ends], ends, strict=False)]

    def elements_of(self, kept: Any, shared: bool) -> list[Any]:
        # A row of several windows is another object in each: a function may change it.
        elements: list[Any] = self.state.copies(kept) if shared else kept
        return elements


class FoldedContents(BatchContents):
    """What rows were reduced or aggregated to: read once for all rows of a batch, and written once."""

    def __init__(self, operator: WindowOperator, descriptor: StateDescriptor, timed: bool = False) -> None:
        """``timed``: they are made of rows with their times."""
        super().__init__(operator, descriptor, owned=True)
        if timed:
            self.stored = with_time

    def fire(self, window: Any, keep: bool) -> None:
        contents = self.state.get()
        if contents is None:
            return
        if keep:
            self.state.keep_copy()
        self._call_function(window, [contents])

    def kept_many(self, identities: list[Hashable], keys: list[Any]) -> list[Any]:
        kept: list[Any] = self.state.kept_many(identities, keys)
        return kept

    def keep_many(self, identities: list[Hashable], keys: list[Any], kept: list[Any]) -> None:
        self.state.keep_many(identities, keys, kept)

    def is_absent(self, identity: Hashable) -> bool:
        absent: bool = self.state.is_absent(identity)
        return absent

    def folded_groups(
        self, batch: Batch, keys: KeysOfBatch, groups: Groups, rows: Numbers, before: list[Any]
    ) -> list[Any]:
        values, folded, context = batch.values, self.state.folded, self._operator.key_context
        after, value, numbers = list[Any](), None, groups.keys.tolist()
        in_groups, ends = groups.in_order(rows)
        try:
            start = 0
            for number, kept, end in zip(numbers, before, ends, strict=True):
                context.key, context.identity = keys.keys[number], keys.identities[number]
                for row in in_groups[start:end]:
                    value = values[row]
                    kept = folded(value, kept)
                after.append(kept)
                start = end
        except BaseException as error:
            raise self._operator.failure(error, value, context.key) from error
        return after

    def elements_of(self, kept: Any, shared: bool) -> list[Any]:
        result = self.state.result_of(kept)
        return [] if result is None else [result]
