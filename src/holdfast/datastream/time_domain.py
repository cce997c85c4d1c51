"""PyFlink's time domains."""

from holdfast.state.timers import TimeDomain

__all__ = ["TimeDomain"]
