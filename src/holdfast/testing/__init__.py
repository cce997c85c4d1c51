"""Tests of functions with state and timers, of sources and of sinks, in a plain process.

A harness runs one subtask of one operator with the classes that run it inside a Spark task:

    with KeyedOperatorHarness(CountWithKeyedState(), lambda row: row[0], Types.STRING()) as harness:
        harness.push(("a", 1)).push(("a", 2))
        harness.assert_state(descriptor, {"a": (2, 3)})
        with harness.rescaled(3) as subtasks:
            subtasks.push(("a", 3)).assert_state(descriptor, {})

``TestSource`` is for whole jobs: it gives rows, pauses, fails once and ends where a test says so. ``InProcessEngine``
runs whole programs in the process of the test, without Spark.
"""

from holdfast.testing.clock import ManualClock
from holdfast.testing.connected import ConnectedHarness, KeyedConnectedHarness
from holdfast.testing.endpoints import SinkHarness, SourceHarness
from holdfast.testing.in_process import InProcessEngine
from holdfast.testing.operators import KeyedOperatorHarness, OperatorHarness
from holdfast.testing.options import HarnessOptions
from holdfast.testing.scripted_source import TestSource
from holdfast.testing.snapshot import HarnessSnapshot
from holdfast.testing.subtasks import Subtasks
from holdfast.testing.windows import WindowHarness, WindowOptions

__all__ = [
    "ConnectedHarness",
    "HarnessOptions",
    "HarnessSnapshot",
    "InProcessEngine",
    "KeyedConnectedHarness",
    "KeyedOperatorHarness",
    "ManualClock",
    "OperatorHarness",
    "SinkHarness",
    "SourceHarness",
    "Subtasks",
    "TestSource",
    "WindowHarness",
    "WindowOptions",
]
