"""Windows of a fixed size whose function sees all their rows, a batch at a time (see ``fixed_windows``)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from holdfast.runtime.batch import Batch
from holdfast.runtime.windowing.fixed_windows import KeysOfBatch
from holdfast.runtime.windowing.folded_windows import FoldedWindowOperator
from holdfast.runtime.windowing.folding import Groups, Numbers
from holdfast.runtime.windowing.windows import TimeWindow


class ListedWindowOperator(FoldedWindowOperator):
    """Collects the rows of a window. What the state has of it is not read before it fires: rows are added."""

    def _kept(self, window: TimeWindow, identities: list[Hashable], keys: list[Any]) -> list[Any]:
        return [None] * len(keys)

    def _folded(
        self, batch: Batch, keys: KeysOfBatch, groups: Groups, rows: Numbers, before: list[Any]
    ) -> list[Any]:
        values = batch.values
        members = [values[row] for row in rows[np.argsort(groups.members, kind="stable")].tolist()]
        bounds = np.cumsum(np.bincount(groups.members, minlength=len(before))).tolist()
        return [members[start:end] for start, end in zip([0, *bounds], bounds, strict=False)]

    def _set_kept(self, identities: list[Hashable], keys: list[Any], kept: list[Any]) -> None:
        context, contents = self.key_context, self._contents
        for context.identity, context.key, rows in zip(identities, keys, kept, strict=True):
            contents.add_all(rows)

    def _is_new(self, identity: Hashable) -> bool:
        return False

    def _elements(self, kept: Any) -> list[Any]:
        # A row of several windows is another object in each: a function may change it.
        return self._contents.copies(kept) if self._assigner.most_windows > 1 else kept  # type: ignore[no-any-return]
