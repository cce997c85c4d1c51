"""The keys of a batch by number."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from holdfast.runtime.event_times import Numbers


class KeysOfBatch:
    """The keys of a batch, each once, and for each row the number of its key."""

    def __init__(self, numbers: Numbers, identities: Sequence[Hashable], keys: Sequence[Any]) -> None:
        self.numbers = numbers
        self.identities = identities
        self.keys = keys

    @classmethod
    def of(cls, keys: Sequence[Any], identities: Sequence[Hashable]) -> KeysOfBatch:
        """The keys of rows."""
        numbers = {identity: number for number, identity in enumerate(dict.fromkeys(identities))}
        distinct = dict(zip(identities, keys, strict=True))
        of_rows = np.fromiter(map(numbers.__getitem__, identities), np.int64, len(identities))
        return cls(of_rows, list(numbers), list(distinct.values()))

    def ordered_by(self, places: Sequence[bytes]) -> KeysOfBatch:
        """The keys, numbered in another order."""
        order = sorted(range(len(places)), key=places.__getitem__)
        numbers = np.empty(len(order), dtype=np.int64)
        numbers[order] = np.arange(len(order))
        return KeysOfBatch(
            numbers[self.numbers], [self.identities[place] for place in order], [self.keys[place] for place in order]
        )
