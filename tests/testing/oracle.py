"""What ``Everything`` must have done, in plain Python: the state of each key, its timers, and its output."""

from __future__ import annotations

import random
from collections import defaultdict
from copy import deepcopy
from typing import Any

from holdfast.testing import KeyedOperatorHarness, Subtasks
from tests.testing.functions import AGGREGATING, LIST, MAP, REDUCING, VALUE

KEYS = [f"key-{n}" for n in range(12)]
OPERATIONS = ["set", "add", "put", "remove", "reduce", "aggregate", "event", "processing", "cancel", "clear"]


class Oracle:
    def __init__(self) -> None:
        self.value: dict[str, int] = {}
        self.list: dict[str, list[int]] = defaultdict(list)
        self.map: dict[str, dict[str, int]] = defaultdict(dict)
        self.reducing: dict[str, int] = {}
        self.aggregating: dict[str, tuple[int, int]] = {}
        self.event: set[tuple[int, str]] = set()
        self.processing: set[tuple[int, str]] = set()
        self.watermark = -(1 << 63)
        self.output: list[Any] = []

    def copy(self) -> Oracle:
        return deepcopy(self)

    def push(self, row: tuple[str, str, int]) -> None:
        key, operation, number = row
        if operation == "set":
            self.value[key] = number
        elif operation == "add":
            self.list[key].append(number)
        elif operation == "put":
            self.map[key][str(number % 5)] = number
        elif operation == "remove":
            self.map[key].pop(str(number % 5), None)
        elif operation == "reduce":
            self.reducing[key] = max(self.reducing.get(key, number), number)
        elif operation == "aggregate":
            count, total = self.aggregating.get(key, (0, 0))
            self.aggregating[key] = (count + 1, total + number)
        elif operation == "event":
            self.event.add((number, key))
        elif operation == "processing":
            self.processing.add((number, key))
        elif operation == "cancel":
            self.event.discard((number, key))
            self.processing.discard((number, key))
        elif operation == "clear":
            for state in (self.value, self.list, self.map, self.reducing, self.aggregating):
                state.pop(key, None)  # type: ignore[attr-defined]  # a dict
        self.output.append((key, operation, key, self.value.get(key)))

    def advance_watermark(self, to: int) -> None:
        # A timer that is registered behind the watermark waits for the next advance.
        if to > self.watermark:
            self.watermark = to
            self._fire("event", self.event, to)

    def advance_clock(self, to: int) -> None:
        self._fire("processing", self.processing, to)

    def _fire(self, domain: str, timers: set[tuple[int, str]], to: int) -> None:
        for time, key in sorted(timer for timer in timers if timer[0] <= to):
            timers.discard((time, key))
            self.list[key].append(time)
            self.output.append((domain, time, key))

    def check_state(self, harness: KeyedOperatorHarness | Subtasks[KeyedOperatorHarness]) -> None:
        for key in KEYS:
            assert harness.state(VALUE, key) == self.value.get(key), key
            assert harness.state(LIST, key) == self.list.get(key, []), key
            assert harness.state(MAP, key) == self.map.get(key, {}), key
            assert harness.state(REDUCING, key) == self.reducing.get(key), key
            count, total = self.aggregating.get(key, (0, 0))
            assert harness.state(AGGREGATING, key) == (total / count if count else None), key


def random_row(chance: random.Random, now: int) -> tuple[str, str, int]:
    """Timers lie a little ahead of the time it is; other numbers are small."""
    operation = chance.choice(OPERATIONS)
    number = now + chance.randrange(1, 40) if operation in ("event", "processing", "cancel") else chance.randrange(100)
    return chance.choice(KEYS), operation, number
