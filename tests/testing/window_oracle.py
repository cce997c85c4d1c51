"""What windows by event time must give, in plain Python: rows by key and window, and a watermark."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Row = tuple[str, int]
Window = tuple[int, int]
#: Key, window, and the sum of its rows.
Fired = tuple[str, int, int, int]

MIN = -(1 << 63)


@dataclass
class WindowOracle:
    assign: Callable[[int], list[Window]]
    merging: bool = False
    lateness: int = 0
    watermark: int = MIN
    windows: dict[str, dict[Window, list[int]]] = field(default_factory=lambda: defaultdict(dict))
    fired: list[Fired] = field(default_factory=list)
    late: list[Row] = field(default_factory=list)

    def push(self, row: Row, timestamp: int) -> None:
        key, value = row
        skipped = True
        for assigned in self.assign(timestamp):
            window = self._merged(key, assigned) if self.merging else assigned
            if window[1] - 1 + self.lateness <= self.watermark:
                self.windows[key].pop(window, None)
                continue
            skipped = False
            self.windows[key].setdefault(window, []).append(value)
            if window[1] - 1 <= self.watermark:
                self._fire(key, window)
        if skipped and timestamp + self.lateness <= self.watermark:
            self.late.append(row)

    def advance(self, watermark: int) -> None:
        before, self.watermark = self.watermark, max(watermark, self.watermark)
        for key, windows in self.windows.items():
            for window in list(windows):
                if before < window[1] - 1 <= self.watermark:
                    self._fire(key, window)
                if window[1] - 1 + self.lateness <= self.watermark:
                    del windows[window]

    def take(self) -> list[Fired]:
        taken, self.fired = sorted(self.fired), []
        return taken

    def _merged(self, key: str, window: Window) -> Window:
        windows = self.windows[key]
        rows: list[int] = []
        while touching := [w for w in windows if w[0] <= window[1] and window[0] <= w[1]]:
            rows += [value for w in touching for value in windows.pop(w)]
            window = (min(window[0], *(w[0] for w in touching)), max(window[1], *(w[1] for w in touching)))
        windows[window] = rows
        return window

    def _fire(self, key: str, window: Window) -> None:
        self.fired.append((key, *window, sum(self.windows[key][window])))


def tumbling(size: int) -> Callable[[int], list[Window]]:
    return lambda time: [(time // size * size, time // size * size + size)]


def sliding(size: int, slide: int) -> Callable[[int], list[Window]]:
    return lambda time: [
        (start, start + size) for start in range((time - size) // slide * slide, time + 1, slide) if start + size > time
    ]


def session(gap: int) -> Callable[[int], list[Window]]:
    return lambda time: [(time, time + gap)]


class RowOracle(WindowOracle):
    """An oracle whose values are rows, pushed with their keys."""

    def push_row(self, row: Any, key: Any, time: int) -> None:
        before = len(self.late)
        self.push((key, row), time)
        # The key went along, and is taken off.
        self.late[before:] = [row for _ in self.late[before:]]

    def _fire(self, key: Any, window: Any) -> None:
        rows: Any = self.windows[key][window]
        fired: Any = self.result_of(key, window, rows)
        self.fired.append(fired)

    def result_of(self, key: Any, window: Window, rows: list[Any]) -> tuple[Any, ...]:
        """What a window with these rows gives."""
        raise NotImplementedError
