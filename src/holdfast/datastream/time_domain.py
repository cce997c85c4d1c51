"""PyFlink's time domains."""

from holdfast.runtime.timer_service import TimeDomain

__all__ = ["TimeDomain"]
