"""Python's garbage collector in a worker that keeps state.

Rows are many small objects without cycles, and the state of a worker is many that stay: the collector would look at
both again and again for nothing. Spark's worker moreover runs a full collection after each task, before it takes the
next one.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

#: The collector's generations, in allocations and collections.
_THRESHOLDS = (100_000, 50, 100)

#: Cycles that functions leave behind are looked for after so many tasks.
_TASKS_BETWEEN_COLLECTIONS = 32

_tasks = 0


@contextmanager
def rare_collections() -> Iterator[None]:
    """Stands around a task: what it leaves alive is put aside, and the full collection behind it finds little to do,
    but for every so many tasks.
    """
    global _tasks
    gc.set_threshold(*_THRESHOLDS)
    try:
        yield
    finally:
        _tasks += 1
        if _tasks % _TASKS_BETWEEN_COLLECTIONS:
            gc.freeze()
        else:
            gc.unfreeze()
