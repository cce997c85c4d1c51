"""Windows of a fixed size whose function sees all their rows, a batch at a time (see ``fixed_windows``)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from holdfast.runtime.batch import Batch
from holdfast.runtime.event_times import Numbers
from holdfast.runtime.windowing.fixed_windows import KeysOfBatch
from holdfast.runtime.windowing.folded_windows import FoldedWindowOperator
from holdfast.runtime.windowing.folding import Groups
from holdfast.runtime.windowing.windows import TimeWindow


class ListedWindowOperator(FoldedWindowOperator):
    """Collects the rows of a window. What the state has of it is not read before it fires: rows are added."""

    def _kept(self, window: TimeWindow, identities: list[Hashable], keys: list[Any]) -> list[Any]:
        return [None] * len(keys)

    def _folded(
        self, batch: Batch, keys: KeysOfBatch, groups: Groups, rows: Numbers, before: list[Any]
    ) -> list[Any]:
        values, (in_groups, ends) = batch.values, groups.in_order(rows)
        members = [values[row] for row in in_groups]
        return [members[start:end] for start, end in zip([0, *ends], ends, strict=False)]

    def _set_kept(self, identities: list[Hashable], keys: list[Any], kept: list[Any]) -> None:
        context, contents = self.key_context, self._contents
        for context.identity, context.key, rows in zip(identities, keys, kept, strict=True):
            contents.add_all(rows)

    def _is_new(self, identity: Hashable) -> bool:
        return False

    def _elements(self, kept: Any) -> list[Any]:
        # A row of several windows is another object in each: a function may change it.
        elements: list[Any] = self._contents.copies(kept) if self._assigner.most_windows > 1 else kept
        return elements
