"""Lengths of time as programs write them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from holdfast.errors import ConfigurationError


def milliseconds_of(duration: Any) -> int:
    """A ``Duration``, a ``Time``, a ``timedelta`` or a number of milliseconds, as milliseconds."""
    millis = offset_of(duration)
    if millis < 0:
        raise ConfigurationError(f"A length of time of {millis} ms was given; it must not be negative.")
    return millis


def offset_of(duration: Any) -> int:
    """Milliseconds of a shift, which may be negative."""
    if isinstance(duration, timedelta):
        millis = round(duration.total_seconds() * 1000)
    elif isinstance(duration, int) and not isinstance(duration, bool):
        millis = duration
    else:
        # Told by their methods: the classes belong to the public API, which is built on this package.
        convert = getattr(duration, "to_millis", None) or getattr(duration, "to_milliseconds", None)
        if convert is None:
            raise ConfigurationError(
                f"{duration!r} is not a length of time. Use Duration.of_seconds(10), a timedelta, or milliseconds as "
                "an int."
            )
        millis = int(convert())
    return millis
