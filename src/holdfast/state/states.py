"""The kinds of keyed state as programs see them, with PyFlink's names.

Every method works on the state of the current key (and namespace, where an operator uses them). State is changed by
calling a method and by nothing else: a value that was got and then changed in place is not stored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

import pyarrow as pa

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
IN = TypeVar("IN")
OUT = TypeVar("OUT")


class State(ABC):
    """Any keyed state."""

    @abstractmethod
    def clear(self) -> None:
        """Remove the state of the current key."""


class ValueState(State, Generic[T]):
    """One value per key."""

    @abstractmethod
    def value(self) -> T | None:
        """The value; None when there is none."""

    @abstractmethod
    def update(self, value: T | None) -> None:
        """Set the value; None removes it."""

    @abstractmethod
    def get_many(self, keys: pa.Array) -> pa.Array:
        """The values of many keys of the subtask, whatever the current one is: a column of the Arrow type of the
        state's type, null where a key has none.
        """

    @abstractmethod
    def put_many(self, keys: pa.Array, values: pa.Array) -> None:
        """Set the values of many keys, whatever the current one is; null removes one. Of a key that is there more than
        once, the last value counts.
        """


class AppendingState(State, Generic[IN, OUT]):
    """State to which elements are added."""

    @abstractmethod
    def get(self) -> OUT | None:
        """What the elements added so far make up."""

    @abstractmethod
    def add(self, value: IN) -> None:
        """Add an element."""


class MergingState(AppendingState[IN, OUT]):
    """Appending state whose instances of several namespaces can be made one, as merging windows need."""


class ListState(MergingState[T, Iterable[T]]):
    """A list per key. Adding writes what is added and does not read or rewrite the rest."""

    @abstractmethod
    def get(self) -> Iterable[T]:
        """The elements in the order in which they were added; empty when there are none."""

    @abstractmethod
    def update(self, values: Iterable[T]) -> None:
        """Replace all elements."""

    @abstractmethod
    def add_all(self, values: Iterable[T]) -> None:
        """Add several elements."""

    def __iter__(self) -> Iterator[T]:
        return iter(self.get())


class ReducingState(MergingState[T, T]):
    """One value per key, into which every added element is reduced."""


class AggregatingState(MergingState[IN, OUT]):
    """One accumulator per key, to which every element is added; ``get`` gives its result."""


class MapState(State, Generic[K, V]):
    """A map per key. Every entry is stored on its own: reading or writing one does not touch the others."""

    @abstractmethod
    def get(self, key: K) -> V | None:
        """The value under ``key``; None when there is none."""

    @abstractmethod
    def put(self, key: K, value: V) -> None: ...

    @abstractmethod
    def put_all(self, dict_value: Mapping[K, V] | Iterable[tuple[K, V]]) -> None:
        """Entries of a mapping, or pairs: PyFlink takes ``entries.items()`` alone for keyed state."""

    @abstractmethod
    def remove(self, key: K) -> None:
        """Remove an entry; nothing happens when there is none."""

    @abstractmethod
    def contains(self, key: K) -> bool: ...

    @abstractmethod
    def items(self) -> Iterable[tuple[K, V]]: ...

    @abstractmethod
    def is_empty(self) -> bool: ...

    def keys(self) -> Iterable[K]:
        return (key for key, _ in self.items())

    def values(self) -> Iterable[V]:
        return (value for _, value in self.items())

    def __getitem__(self, key: K) -> V | None:
        return self.get(key)

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)

    def __contains__(self, key: Any) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())
