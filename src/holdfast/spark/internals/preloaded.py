"""Modules that every Python process of a job needs, imported by the daemon before it forks them.

A process that is forked with them begins its first task at once; one that imports them itself takes a good half second
of a core for it, at the start of a job and behind every process that died. They also share the memory.

Threads do not survive a fork. Of these modules jemalloc and OpenBLAS have some, and start them again in the child; the
rest start none when they are imported (``tests/spark/test_preloaded.py`` looks).
"""

from __future__ import annotations

import gc
import importlib
import sys

#: What tasks are made of, what functions are subclasses of, and what pyarrow looks for when it makes its first array.
_MODULES = (
    "holdfast.spark.level_task",
    "holdfast.spark.data_frame_task",
    "holdfast.spark.anchor",
    "holdfast.datastream",
    "pandas",
)


def preload() -> None:
    """In the daemon. What cannot be imported is left to the task that needs it, which says so."""
    # Elsewhere, system libraries that NumPy may use do not survive a fork.
    if sys.platform != "linux":
        return
    for module in _MODULES:
        try:
            importlib.import_module(module)
        except ImportError:
            return
    # No process looks through them for garbage, and writes to their memory, again.
    gc.collect()
    gc.freeze()


def differ_from_siblings() -> None:
    """In a process of the daemon: numbers that NumPy draws are to be its own. Python's do so by themselves."""
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()
