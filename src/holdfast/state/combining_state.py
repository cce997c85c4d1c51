"""States of one value per key that elements are added to: reducing and aggregating state."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from holdfast.state.cells import Cells
from holdfast.state.handles import StateMeta
from holdfast.state.keyed_state import MergingNamespaces, StateAccess
from holdfast.state.keys import KeyCodec
from holdfast.state.single_value import AT_ONCE, SingleValue
from holdfast.state.states import AggregatingState, ReducingState


class CombiningState(SingleValue, MergingNamespaces):
    """A single value that two namespaces can combine."""

    def kept(self) -> Any:
        """What the current key has: an accumulator, or what values were reduced to; None for nothing."""
        return self._get()

    def keep(self, kept: Any) -> None:
        """Set it. For an operator that owns it."""
        self._set(kept)

    def kept_many(self, identities: Sequence[Hashable], keys: Sequence[Any]) -> list[Any]:
        """What is kept of several keys, which are known by their identities too."""
        found: list[Any] = []
        for start in range(0, len(keys), AT_ONCE):
            some = slice(start, start + AT_ONCE)
            cached = self.cached_many(identities[some], keys[some], read=True)
            found += [self._cells.open(one.cell) for one in cached]
        return found

    def keep_many(self, identities: Sequence[Hashable], keys: Sequence[Any], kept: Sequence[Any]) -> None:
        """Set those of several keys. For an operator that owns them."""
        for start in range(0, len(keys), AT_ONCE):
            some = slice(start, start + AT_ONCE)
            self.write_many(self.cached_many(identities[some], keys[some], read=False), kept[some])

    def remove_many(self, identities: Sequence[Hashable], keys: Sequence[Any]) -> None:
        """Remove the values of several keys, each once. Of those that were never stored nothing is left."""
        for start in range(0, len(keys), AT_ONCE):
            some = slice(start, start + AT_ONCE)
            removed = self.cached_many(identities[some], keys[some], read=False)
            self.write_many(removed, [None] * len(removed))
            for identity, cached in zip(identities[some], removed, strict=True):
                if cached.absent_in == self._flush:
                    del self._live[identity]

    def is_absent(self, identity: Hashable) -> bool:
        """Whether the store is known to have nothing of a key."""
        cached = self._live.get(identity)
        return cached is not None and cached.absent_in == self._flush

    def add(self, value: Any) -> None:
        """See AppendingState."""
        if value is None:
            return self.clear()
        self._put(self.folded(value, self._get()))
        return None

    @abstractmethod
    def folded(self, value: Any, kept: Any) -> Any:
        """What is to be kept when a value comes to what was."""

    @abstractmethod
    def result_of(self, kept: Any) -> Any:
        """What ``get`` gives of what is kept."""

    @abstractmethod
    def combined(self, left: Any, right: Any) -> Any:
        """One of two that were kept."""

    def keep_copy(self) -> None:
        """Whoever has what ``get`` gave of an owned value may change it from now on."""
        value = self._get()
        if value is not None:
            self._live[self._context.identity].cell = self._cells.copy(value)

    def _take(self) -> list[Any]:
        value = self._get()
        if value is None:
            return []
        self.clear()
        return [value]

    def _absorb(self, parts: list[Any]) -> None:
        for part in parts:
            value = self._get()
            self._put(part if value is None else self.combined(value, part))


class StoredReduction(CombiningState):
    """A value per key that elements are reduced into."""

    def __init__(
        self,
        access: StateAccess,
        meta: StateMeta,
        namespaces: KeyCodec | None,
        cells: Cells,
        reduce: Callable[[Any, Any], Any],
    ) -> None:
        super().__init__(access, meta, namespaces, cells)
        self._reduce = reduce

    def get(self) -> Any:
        return self._get()

    def result_of(self, kept: Any) -> Any:
        return kept

    def folded(self, value: Any, kept: Any) -> Any:
        reduced = value if kept is None else self._reduce(kept, value)
        return self._cells.copy(value) if reduced is value else reduced

    def combined(self, left: Any, right: Any) -> Any:
        return self._reduce(left, right)


class KeyedReducingState(StoredReduction, ReducingState[Any]):
    """Reducing state of keys, one merged value each; see ReducingState."""


class StoredAccumulator(CombiningState):
    """An accumulator per key, with what its function makes of it."""

    def __init__(
        self, access: StateAccess, meta: StateMeta, namespaces: KeyCodec | None, cells: Cells, function: Any
    ) -> None:
        super().__init__(access, meta, namespaces, cells)
        self._function = function

    def get(self) -> Any:
        accumulator = self._get()
        return None if accumulator is None else self.result_of(accumulator)

    def result_of(self, kept: Any) -> Any:
        return self._function.get_result(kept)

    def folded(self, value: Any, kept: Any) -> Any:
        return self._function.add(value, self._function.create_accumulator() if kept is None else kept)

    def combined(self, left: Any, right: Any) -> Any:
        return self._function.merge(left, right)


class KeyedAggregatingState(StoredAccumulator, AggregatingState[Any, Any]):
    """Aggregating state of keys, one accumulator each; see AggregatingState."""
