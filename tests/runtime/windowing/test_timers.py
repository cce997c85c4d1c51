"""Timers of windows: those that are known to be there are not registered again."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holdfast.runtime.windowing.serializers import TimeWindowSerializer
from holdfast.runtime.windowing.timers import WindowTimers
from holdfast.runtime.windowing.windows import TimeWindow
from holdfast.state.key_table import KeyContext


class Queue:
    """What a timer queue holds, and how often it was told to."""

    def __init__(self) -> None:
        self.timers: set[Any] = set()
        self.registrations = 0

    def register(self, time: int, key: Any, namespace: Any, unstored: bool = False) -> None:
        self.registrations += 1
        self.timers.add((time, key, namespace))

    def register_many(self, time: int, keys: dict[Any, Any], namespace: Any, unstored: Any) -> None:
        for key in keys:
            self.register(time, key, namespace)

    def delete(self, *timer: Any) -> None:
        self.timers.discard(timer)


def timers_of(queue: Queue) -> tuple[WindowTimers, KeyContext]:
    keys = KeyContext()
    return WindowTimers(queue, keys, TimeWindowSerializer()), keys  # type: ignore[arg-type]  # all that is asked


def test_a_timer_is_registered_once() -> None:
    queue = Queue()
    timers, keys = timers_of(queue)
    for key in ("a", "b", "a", "b"):
        keys.key = keys.identity = key
        timers.register(9, TimeWindow(0, 10))
        timers.register(9, TimeWindow(5, 10))
    assert queue.registrations == 4


kinds = st.sampled_from(["register", "register many", "delete", "fire", "fire many"])
steps = st.tuples(kinds, st.sampled_from("ab"), st.integers(0, 1), st.integers(0, 1))


@given(st.lists(steps))
def test_the_queue_holds_what_it_would_without_the_memory(told: list[tuple[str, str, int, int]]) -> None:
    queue, plain = Queue(), Queue()
    timers, keys = timers_of(queue)
    for step, key, time, start in told:
        keys.key = keys.identity = key
        window = TimeWindow(start, 10)
        timer = (time, key, window)
        if step == "register":
            timers.register(time, window)
            plain.register(*timer)
        elif step == "register many":
            timers.register_many(time, window, {"a": "a", "b": "b"}, lambda identity: False)
            plain.register_many(time, {"a": "a", "b": "b"}, window, ())
        elif step == "fire many":
            for one in "ab":
                queue.timers.discard((time, one, window))
                plain.timers.discard((time, one, window))
            timers.gone_many(time, window, "ab")
        elif step == "delete":
            timers.delete(time, window)
            plain.delete(*timer)
        elif timer in plain.timers:
            # A queue removes a timer before it fires.
            queue.timers.discard(timer)
            plain.timers.discard(timer)
            timers.gone(time, window)
        assert queue.timers == plain.timers
