"""The windows of a key that merge: which there are, and which namespace holds the contents of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from holdfast.runtime.windowing.assigners import MergingWindowAssigner
from holdfast.runtime.windowing.serializers import WindowSerializer
from holdfast.state.descriptors import ValueStateDescriptor
from holdfast.state.key_merging import MERGING_WINDOW_SET
from holdfast.state.keyed_backend import KeyedStateBackend
from holdfast.types.typeinfo import Types

#: Called with the result, the windows that became it, the namespace of its contents, and those to add to it.
Merge = Callable[[Any, list[Any], Any, list[Any]], None]
#: Called with a result and the windows that are to become it: whether it is over already.
IsOver = Callable[[Any, list[Any]], bool]


class MergingWindowSet:
    """The windows of the current key, kept in its state: by window, the namespace of its contents. That is the window
    as it was at first, unless an operator takes another.

    A window that grows keeps the namespace it began with, so that nothing is moved until two windows merge.
    """

    def __init__(
        self, keyed_state: KeyedStateBackend, assigner: MergingWindowAssigner[Any, Any], windows: WindowSerializer
    ) -> None:
        pair = Types.TUPLE([windows.type_info, windows.type_info])
        self._state = keyed_state.state(ValueStateDescriptor(MERGING_WINDOW_SET, Types.LIST(pair)), owned=True)
        self._assigner = assigner
        self._windows = windows

    def state_window(self, window: Any) -> Any:
        """What has the contents of ``window``, as a window; None when there is no such window any more."""
        return self._read().get(window)

    def windows(self) -> list[Any]:
        return list(self._read())

    def pairs(self) -> list[tuple[Any, Any]]:
        """All windows as namespaces, each with its state window."""
        return self._state.value() or []

    def replace(self, pairs: list[tuple[Any, Any]]) -> None:
        """Other windows than before."""
        self._state.update(pairs or None)

    def retire(self, window: Any) -> None:
        """The window is gone."""
        windows = self._read()
        del windows[window]
        self._write(windows)

    def add(self, window: Any, merge: Merge, is_over: IsOver) -> tuple[Any, Any] | None:
        """Add a window, merging what it brings together: the window that it is in now, and that one's state window.
        ``merge`` is called for every merge of windows that were there before. None, with nothing done, where the window
        would become part of one that is over.
        """
        windows = self._read()
        found = windows.get(window)
        if found is not None:
            return None if is_over(window, [window]) else (window, found)
        merges = _Merges()
        self._assigner.merge_windows([*windows, window], merges)
        result = window
        if any([is_over(merged, group) and window in group for merged, group in merges.found]):
            return None
        for merged, group in merges.found:
            if window in group:
                result = merged
            others = [one for one in group if one != window]
            if others:
                self._merge(windows, merged, others, merge)
        holder = windows.setdefault(result, result)
        self._write(windows)
        return result, holder

    def _merge(self, windows: dict[Any, Any], result: Any, group: list[Any], merge: Merge) -> None:
        holders = [windows.pop(one) for one in group]
        windows[result] = holders[0]
        if group != [result]:
            merge(result, group, holders[0], holders[1:])

    def _read(self) -> dict[Any, Any]:
        restore = self._windows.restore
        return {restore(window): restore(holder) for window, holder in self.pairs()}

    def _write(self, windows: dict[Any, Any]) -> None:
        namespace = self._windows.namespace
        self.replace([(namespace(window), namespace(holder)) for window, holder in windows.items()])


class _Merges:
    """What ``merge_windows`` tells: nothing may change before it has told all."""

    def __init__(self) -> None:
        self.found: list[tuple[Any, list[Any]]] = []

    def merge(self, to_be_merged: Iterable[Any], merge_result: Any) -> None:
        self.found.append((merge_result, list(to_be_merged)))
