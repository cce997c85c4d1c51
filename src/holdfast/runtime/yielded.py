"""Rows as they are when a function yields them, whatever it does to the same object afterwards.

Results of a batch are handed on together. A function that yields one object again and again, changed in between, would
otherwise have yielded its last content every time. Only what can be changed is copied: an operator whose declared
output type is immutable pays nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from holdfast.runtime.plan import OperatorSpec
from holdfast.types.immutable import IMMUTABLE_CLASSES
from holdfast.types.row import Row

#: The set itself: it grows with types that are registered.
_UNCHANGEABLE = IMMUTABLE_CLASSES

Results = Iterable[Any]


def may_change(spec: OperatorSpec) -> bool:
    """Whether a row that an operator emits can be changed in place."""
    return not all(one.immutable for one in (spec.output_type, *spec.side_outputs.values()))


def as_yielded(function: Callable[..., Results | None]) -> Callable[..., Results | None]:
    """The function, each of whose rows is copied in the moment in which it is yielded."""

    def copying(*arguments: Any) -> Results | None:
        results = function(*arguments)
        return None if results is None else map(copied, results)

    return copying


def as_returned(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose row is copied when it is returned."""
    return lambda *arguments: copied(function(*arguments))


def copied(value: Any) -> Any:
    """The value itself if nothing can change it, else a copy. What cannot be copied is shared: it could not be sent to
    another task either.
    """
    kind: Any = type(value)
    if kind in _UNCHANGEABLE:
        return value
    if kind is tuple:
        return value if _UNCHANGEABLE.issuperset(map(type, value)) else tuple(map(copied, value))
    if kind is list:
        return list(map(copied, value))
    if kind is dict:
        return {key: copied(field) for key, field in value.items()}
    if isinstance(value, Row):
        return _copied_row(value)
    if _has_fields_alone(kind):
        fields = object.__new__(kind)
        fields.__dict__.update({name: copied(field) for name, field in value.__dict__.items()})
        return fields
    try:
        return copy.deepcopy(value)
    except Exception:
        return value


def _copied_row(row: Row) -> Row:
    other: Row = list.__new__(type(row))
    list.extend(other, map(copied, row))
    return other


@cache
def _has_fields_alone(kind: Any) -> bool:
    """Whether an instance is its ``__dict__`` and nothing else, as that of most classes is; ``deepcopy`` finds out for
    every value anew, ten times slower.
    """
    bases = kind.__mro__[:-1]
    custom = ("__deepcopy__", "__copy__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__slots__")
    plain = kind.__new__ is object.__new__ and bool(kind.__dictoffset__)
    return plain and not any(name in base.__dict__ for base in bases for name in custom)
