"""Event time of a source that reads several splits: each has its own, and the slowest that is active counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from holdfast.runtime.event_times import Numbers
from holdfast.runtime.operator import MIN_WATERMARK


class SplitTimes:
    """The highest timestamp of every split that a subtask reads, and since when it has been quiet."""

    def __init__(self, idleness_ms: int | None, restored: Mapping[str, int]) -> None:
        self._idleness = idleness_ms
        #: What splits had reached at a restore; any of them may become this subtask's.
        self._restored = dict(restored)
        self._highest: dict[str, int] = {}
        self._quiet_since: dict[str, int] = {}

    def keep(self, splits: Iterable[str], now: int) -> None:
        """The subtask has these splits from now on. A new one holds back event time until it has rows or is idle."""
        wanted = set(splits)
        for gone in self._highest.keys() - wanted:
            del self._highest[gone], self._quiet_since[gone]
        for split in wanted - self._highest.keys():
            self._highest[split] = self._restored.get(split, MIN_WATERMARK)
            self._quiet_since[split] = now

    def advance(self, split: str, timestamps: Numbers, now: int) -> Numbers:
        """Rows of a split arrive: the highest time of the slowest split, before the first of them and after each."""
        own = np.maximum.accumulate(np.append(self._highest[split], timestamps))
        self._highest[split] = int(own[-1])
        self._quiet_since[split] = now
        others = [highest for other, highest in self._active(now).items() if other != split]
        return np.minimum(own, min(others)) if others else own

    def slowest(self, now: int) -> int:
        """The highest time of the slowest active split; with none active, nothing new is known."""
        return min(self._active(now).values(), default=MIN_WATERMARK)

    def quiet_since(self) -> Iterable[int]:
        """Since when each split has had no rows."""
        return self._quiet_since.values()

    def lead(self, split: str, now: int) -> tuple[int, int]:
        """The highest time of a split, and that of the slowest of the others that are active and have had rows."""
        others = [time for other, time in self._active(now).items() if other != split and time != MIN_WATERMARK]
        return self._highest.get(split, MIN_WATERMARK), min(others, default=MIN_WATERMARK)

    def wait(self, split: str, now: int) -> None:
        """A split is not read, so that it says nothing that no rows come of it."""
        self._quiet_since[split] = now

    def stored(self) -> list[tuple[str, int]]:
        return sorted(self._highest.items())

    def _active(self, now: int) -> dict[str, int]:
        if self._idleness is None:
            return self._highest
        return {s: highest for s, highest in self._highest.items() if now - self._quiet_since[s] < self._idleness}
