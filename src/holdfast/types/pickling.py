"""Pickling of values whose type is PICKLED_BYTE_ARRAY."""

from __future__ import annotations

import pickle
from typing import Any

import cloudpickle


def dumps(value: Any) -> bytes:
    """Pickled bytes that any process of the job can load, also when they are of a class of the main program.

    Such classes travel by value, through the same cloudpickle that ships functions: a class that came with a function
    and one that came with a value are then the same class. Everything else takes the faster way by reference.
    """
    try:
        data = pickle.dumps(value, protocol=5)
    except (pickle.PicklingError, AttributeError, TypeError):
        return bytes(cloudpickle.dumps(value, protocol=5))
    # The main module of an executor is not the program's, so what refers to it must travel by value.
    if b"__main__" in data:
        return bytes(cloudpickle.dumps(value, protocol=5))
    return data


def loads(data: bytes) -> Any:
    return pickle.loads(data)
