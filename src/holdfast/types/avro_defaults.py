"""Defaults of fields as Avro schemas write them in JSON, and the values that they stand for."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

from holdfast.types.registry import FromJson

_EPOCH = dt.datetime(1970, 1, 1)


def same(found: Any) -> Any:
    return found


def optional(read: FromJson, found: Any) -> Any:
    return None if found is None else read(found)


def bytes_of(text: str) -> bytes:
    return text.encode("latin-1")


def date(days: int) -> dt.date:
    return (_EPOCH + dt.timedelta(days=days)).date()


def moment(**unit: int) -> Callable[[int], dt.datetime]:
    """Timestamps in units of ``milliseconds=1`` or ``microseconds=1``."""
    return lambda count: _EPOCH + count * dt.timedelta(**unit)


def time(**unit: int) -> Callable[[int], dt.time]:
    timestamp = moment(**unit)
    return lambda count: timestamp(count).time()
