"""Windows of a fixed size with a reduce or aggregate function of the program, a batch at a time (see
``fixed_windows``). The function sees the rows of a key's window in their order, as in the loop, and the windows one
after the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.runtime.batch import Batch
from holdfast.runtime.event_times import Numbers
from holdfast.runtime.windowing.fixed_windows import FixedWindowOperator, KeysOfBatch
from holdfast.runtime.windowing.folding import Groups


class FoldedWindowOperator(FixedWindowOperator):
    """Calls the function for all rows of a window in one go: what is kept for it is read once, and written once."""

    least_rows = 32

    def _fits(self, batch: Batch) -> bool:
        # None empties a window.
        return not any([value is None for value in batch.values])

    def _keys_of_batch(self, batch: Batch) -> KeysOfBatch:
        keys, identities = self.keys_of(batch)
        numbers = {identity: number for number, identity in enumerate(dict.fromkeys(identities))}
        distinct = dict(zip(identities, keys, strict=True))
        of_rows = np.fromiter(map(numbers.__getitem__, identities), np.int64, len(identities))
        return KeysOfBatch(of_rows, list(numbers), list(distinct.values()))

    def _folded(
        self, batch: Batch, keys: KeysOfBatch, groups: Groups, rows: Numbers, before: list[Any]
    ) -> list[Any]:
        values, folded, context = batch.values, self._contents.folded, self.key_context
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
            raise self.failure(error, value, context.key) from error
        return after

    def _elements(self, kept: Any) -> list[Any]:
        result = self._contents.result_of(kept)
        return [] if result is None else [result]
