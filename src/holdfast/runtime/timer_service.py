"""PyFlink's timer service, over the timer queues of a keyed backend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.errors import StateAccessError

if TYPE_CHECKING:
    from holdfast.runtime.operator import Operator
    from holdfast.state.keyed_backend import KeyedStateBackend
    from holdfast.state.timers import TimeDomain, TimerQueue


class InternalTimeServiceManager:
    """The timers of an operator, by the name of a service and the domain. They are keyed state."""

    def __init__(self, keyed_state: KeyedStateBackend) -> None:
        self._keyed_state = keyed_state

    def queue(self, name: str, domain: TimeDomain, namespace_type: Any = None) -> TimerQueue:
        """Always the same object for one name and domain."""
        return self._keyed_state.timers(name, domain, namespace_type)


class ForbiddenTimerService:
    """The timer service of a stream without keys: it has clocks but no timers."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator

    def current_processing_time(self) -> int:
        return self._operator.environment.clock()

    def current_watermark(self) -> int:
        return self._operator.watermark

    def register_processing_time_timer(self, timestamp: int) -> None:
        self._refuse()

    def register_event_time_timer(self, timestamp: int) -> None:
        self._refuse()

    def delete_processing_time_timer(self, timestamp: int) -> None:
        self._refuse()

    def delete_event_time_timer(self, timestamp: int) -> None:
        self._refuse()

    def _refuse(self) -> None:
        raise StateAccessError(
            f"{self._operator.where}: timers exist on keyed streams only. Put key_by(...) before the function."
        )


class TimerService(ForbiddenTimerService):
    """Timers of the current key. A timer is one (timestamp, key) per domain: registering it twice is registering it
    once.
    """

    def __init__(self, operator: Operator, event: TimerQueue, processing: TimerQueue) -> None:
        super().__init__(operator)
        self._event = event
        self._processing = processing
        self._context = operator.environment.keyed().context

    def register_event_time_timer(self, timestamp: int) -> None:
        self._event.register(timestamp, self._current_key())

    def delete_event_time_timer(self, timestamp: int) -> None:
        self._event.delete(timestamp, self._current_key())

    def register_processing_time_timer(self, timestamp: int) -> None:
        self._processing.register(timestamp, self._current_key())

    def delete_processing_time_timer(self, timestamp: int) -> None:
        self._processing.delete(timestamp, self._current_key())

    def _current_key(self) -> Any:
        key = self._context.key
        if key is None:
            raise StateAccessError(
                f"{self._operator.where}: a timer belongs to a key, and there is none now. Set and delete timers in "
                "process_element() and on_timer(); open() and broadcast elements have no key."
            )
        return key


class BatchTimerService(TimerService):
    """Timers of a job in batch mode, which all fire when the input has ended. One that is set by then is left out, as
    in Flink: a timer that sets the next one would never come to an end.
    """

    def register_event_time_timer(self, timestamp: int) -> None:
        if not self._operator.event_time_ended:
            super().register_event_time_timer(timestamp)

    def register_processing_time_timer(self, timestamp: int) -> None:
        if not self._operator.event_time_ended:
            super().register_processing_time_timer(timestamp)
