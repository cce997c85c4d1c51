"""Pickling of values whose type is PICKLED_BYTE_ARRAY."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

_by_value: Callable[[Any], bytes] | None = None


def use_by_value_pickler(dumps: Callable[[Any], bytes]) -> None:
    """Set the pickler for objects whose class other processes cannot import.

    The Spark layer calls it with the cloudpickle that ships functions, so that a class that came with a function and
    one that came with a value are the same class.
    """
    global _by_value
    _by_value = dumps


def dumps(value: Any) -> bytes:
    """Pickled bytes that any process of the job can load."""
    try:
        data = pickle.dumps(value, protocol=5)
    except (pickle.PicklingError, AttributeError, TypeError):
        if _by_value is None:
            raise
        return _by_value(value)
    # The main module of an executor is not the program's, so what refers to it must travel by value.
    if _by_value is not None and b"__main__" in data:
        return _by_value(value)
    return data


def loads(data: bytes) -> Any:
    return pickle.loads(data)
