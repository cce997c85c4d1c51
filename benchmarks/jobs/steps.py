"""The keyed jobs as one step per row, for engines whose API is a function of state and row.

A step is given the key's state (None at first) and a value, and gives the new state (None: it is cleared) and the row
to emit, if any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

State = tuple[Any, ...] | None
Step = Callable[[State, int, int], tuple[State, tuple[int, ...] | None]]

HOUR_MS = 3_600_000


def average(state: State, key: int, value: int) -> tuple[State, tuple[int, ...] | None]:
    """State (sum, count); every third value of a key emits ``sum // count`` and clears it."""
    total, count = (0, 0) if state is None else state
    total, count = total + value, count + 1
    return (None, (key, total // count)) if count == 3 else ((total, count), None)


def totals(state: State, key: int, value: int) -> tuple[State, tuple[int, ...] | None]:
    """State (count, sum, min, max), emitted after every value."""
    if state is None:
        new = (1, value, value, value)
    else:
        new = (state[0] + 1, state[1] + value, min(state[2], value), max(state[3], value))
    return new, (key, *new)


def dedup(state: State, key: int, value: int) -> tuple[State, tuple[int, ...] | None]:
    """The first value of each key; the state says that it was there."""
    return (state, None) if state is not None else ((True,), (key, value))


STEPS: dict[str, Step] = {"average": average, "totals": totals, "dedup": dedup}

#: As Spark writes types.
STATES = {
    "average": "sum BIGINT, count BIGINT",
    "totals": "count BIGINT, sum BIGINT, least BIGINT, most BIGINT",
    "dedup": "seen BOOLEAN",
}
OUTPUTS = {
    "average": "key BIGINT, average BIGINT",
    "totals": "key BIGINT, count BIGINT, sum BIGINT, least BIGINT, most BIGINT",
    "dedup": "key BIGINT, value BIGINT",
}
#: Jobs whose combined form emits a key's last row of a micro-batch alone.
EMIT_LAST = frozenset({"totals"})


def names(schema: str) -> list[str]:
    return [column.split()[0] for column in schema.split(", ")]
