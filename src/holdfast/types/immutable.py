"""Classes whose instances nothing can change in place: they are shared where others are copied."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

from holdfast.types.instant import Instant

#: Looked into for every row; it grows with ``declare_immutable``.
IMMUTABLE_CLASSES: set[type] = {
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    Decimal,
    Instant,
    dt.date,
    dt.time,
    dt.datetime,
    dt.timedelta,
}


def declare_immutable(*classes: type) -> None:
    """Say of classes that no instance is ever changed; subclasses of them are not meant."""
    IMMUTABLE_CLASSES.update(classes)
