"""Tests of functions with state and timers, in a plain process.

A harness runs one subtask of one operator with the classes that run it inside a Spark task:

    with KeyedOperatorHarness(CountWithKeyedState(), lambda row: row[0], Types.STRING()) as harness:
        harness.push(("a", 1)).push(("a", 2))
        assert harness.state(descriptor, "a") == (2, 3)
        snapshot = harness.snapshot()
    again = KeyedOperatorHarness.restore(snapshot, CountWithKeyedState(), lambda row: row[0], Types.STRING())
"""

from holdfast.testing.clock import ManualClock
from holdfast.testing.operators import KeyedOperatorHarness, OperatorHarness
from holdfast.testing.options import HarnessOptions
from holdfast.testing.snapshot import HarnessSnapshot

__all__ = [
    "HarnessOptions",
    "HarnessSnapshot",
    "KeyedOperatorHarness",
    "ManualClock",
    "OperatorHarness",
]
