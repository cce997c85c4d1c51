"""PyFlink's timer service."""

from holdfast.runtime.timer_service import TimerService

__all__ = ["TimerService"]
