"""The functions of the short forms ``sum``, ``min``, ``max``, ``min_by`` and ``max_by``, for a loop and by column."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from operator import gt, lt
from typing import Any

from holdfast.runtime.partial_aggregates import WHOLE_MAX, WHOLE_MIN, WHOLE_SUM, PartialFunction
from holdfast.types.row import Row

#: The forms that change one field, as rows of the table. What they do with two values is the same for all types.
_PARTIALS = {"Sum": WHOLE_SUM, "Min": WHOLE_MIN, "Max": WHOLE_MAX}

#: The forms that take the whole row.
_BETTER: dict[str, Callable[[Any, Any], bool]] = {"Min By": lt, "Max By": gt}

#: All forms, for rows that are single values.
VALUE_REDUCERS: dict[str, Callable[[Any, Any], Any]] = {
    **{kind: function.of_two for kind, function in _PARTIALS.items() if function.of_two is not None},
    "Min By": min,
    "Max By": max,
}


@dataclass(frozen=True)
class FieldReducer:
    """A reduce function that says what it does, for whoever can do it by column."""

    kind: str
    index: Any

    @property
    def of_integers(self) -> PartialFunction | None:
        """What is done with a field of integers, by column too. None for the forms that take the whole row."""
        return _PARTIALS.get(self.kind)

    def __call__(self, a: Any, b: Any) -> Any:
        kind, index = self.kind, self.index
        if kind in _BETTER:
            return b if _BETTER[kind](b[index], a[index]) else a
        return _with_field(a, index, VALUE_REDUCERS[kind](a[index], b[index]))


def _with_field(row: Any, index: Any, value: Any) -> Any:
    if isinstance(row, Row):
        changed = copy(row)
        changed[index] = value
        return changed
    fields = list(row)
    fields[index] = value
    return tuple(fields)
