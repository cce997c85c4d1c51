"""Whether directories may have files that were not read, as the driver sees it."""

from __future__ import annotations

from collections.abc import Hashable

from holdfast.connectors.files.tree import FileTree
from holdfast.runtime.source import SourceWatch


class TreeWatch(SourceWatch):
    """Compares listings. Readers list at most once in an interval, so an epoch may know nothing of the last one."""

    def __init__(self, tree: FileTree, interval_ms: int) -> None:
        self._tree = tree
        self.settles_ms = interval_ms

    def look(self) -> Hashable:
        # Of a hundred thousand files a number is kept.
        return hash(frozenset(self._tree.files()))
