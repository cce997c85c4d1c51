"""Whether the values of a column surely are what its reader gives for them, so that nothing has to be converted.

An exchange checks values against their declared type and gives followers its form of them. Where there is none between
two operators these checks say, of a whole batch, that it would make no difference. They run in C, a pass or two over
the values; what they cannot tell is False, and tried.
"""

from __future__ import annotations

import datetime as dt
from array import array
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np

from holdfast.types.arrow_write import fields_of
from holdfast.types.row import Row, RowKind

#: Of the values of a column, any of which may be None.
ColumnCheck = Callable[[Sequence[Any]], bool]

_NONE = type(None)
_CODES = {8: "b", 16: "h", 32: "i", 64: "q"}
#: What int and str turn into each other without asking for more digits.
_MANY_DIGITS = 10**4000


def never(values: Sequence[Any]) -> bool:
    """Nothing is known: every value is converted."""
    return False


def always(values: Sequence[Any]) -> bool:
    """Every value is what it is."""
    return True


def of_class(cls: type, then: ColumnCheck | None = None) -> ColumnCheck:
    """Values of this very class, or None; ``then`` is asked of those that are not None."""
    usual, with_none = {cls}, {cls, _NONE}

    def check(values: Sequence[Any]) -> bool:
        kinds = set(map(type, values))
        if kinds == usual:
            return then is None or then(values)
        if not kinds <= with_none:
            return False
        return then is None or cls not in kinds or then([value for value in values if value is not None])

    return check


def or_none(check: ColumnCheck) -> ColumnCheck:
    """A check for values that may be None, of one for values that are not, and that are some."""

    def checked(values: Sequence[Any]) -> bool:
        if _NONE in set(map(type, values)):
            values = [value for value in values if value is not None]
        return not values or check(values)

    return checked


def _of(right: Callable[[set[type]], bool], then: ColumnCheck) -> ColumnCheck:
    return lambda values: right(set(map(type, values))) and then(values)


def integers(bits: int) -> ColumnCheck:
    code = _CODES[bits]

    def in_range(values: Sequence[Any]) -> bool:
        try:
            array(code, values)
        except OverflowError:
            return False
        return True

    return of_class(int, in_range)


def _of_four_bytes(values: Sequence[Any]) -> bool:
    doubles = np.array(values, np.float64)
    with np.errstate(over="ignore"):
        return bool(np.array_equal(doubles.astype(np.float32), doubles, equal_nan=True))


def _encodable(values: Sequence[str]) -> bool:
    if all(map(str.isascii, values)):
        return True
    try:
        "".join(values).encode()
    except UnicodeEncodeError:
        return False
    return True


def _characters(values: Sequence[str]) -> bool:
    return set(map(len, values)) == {1} and _encodable(values)


def _without(*attributes: str) -> ColumnCheck:
    """All of these are None or 0."""
    get = attrgetter(*attributes)
    return lambda values: not any(map(any, map(get, values)))


def _utc(values: Sequence[dt.datetime]) -> bool:
    return set(map(attrgetter("tzinfo"), values)) == {dt.UTC} and not any(map(attrgetter("fold"), values))


def _instants(values: Sequence[Any]) -> bool:
    """Between the years 1678 and 2261, with the nanoseconds of one second."""
    seconds: list[int] = list(map(attrgetter("seconds"), values))
    nanos: list[int] = list(map(attrgetter("nanos"), values))
    return min(nanos) >= 0 and max(nanos) < 10**9 and max(map(abs, seconds)) < 9 * 10**9


SINGLE = of_class(float, _of_four_bytes)
TEXT = of_class(str, _encodable)
CHARACTER = of_class(str, _characters)
BIG_INTEGER = of_class(int, lambda values: min(values) > -_MANY_DIGITS and max(values) < _MANY_DIGITS)
TIME = of_class(dt.time, _without("tzinfo", "fold"))
TIMESTAMP = of_class(dt.datetime, _without("tzinfo", "fold"))
UTC_TIMESTAMP = of_class(dt.datetime, _utc)


def instants(cls: type) -> ColumnCheck:
    return of_class(cls, _instants)


def decimals(precision: int, scale: int) -> ColumnCheck:
    """Decimals of the scale itself; a zero may have a sign, which is lost."""
    same_scale = Decimal(1).scaleb(-scale).same_quantum
    limit = Decimal(10) ** (precision - scale)

    def check(values: Sequence[Decimal]) -> bool:
        return all(map(same_scale, values)) and all(values) and -limit < min(values) and max(values) < limit

    return of_class(Decimal, check)


def elements(element: ColumnCheck) -> ColumnCheck:
    return of_class(list, None if element is always else lambda values: element(list(chain.from_iterable(values))))


def mappings(key: ColumnCheck, value: ColumnCheck) -> ColumnCheck:
    def check(values: Sequence[dict[Any, Any]]) -> bool:
        keys = list(chain.from_iterable(values))
        return None not in keys and key(keys) and value([item for one in values for item in one.values()])

    return of_class(dict, check)


def _columns(records: Sequence[Sequence[Any]], checks: Sequence[ColumnCheck]) -> bool:
    try:
        columns = fields_of(records, len(checks))
    except ValueError:
        return False
    return all(check(column) for check, column in zip(checks, columns, strict=True))


def tuples(cls: type, fields: Sequence[ColumnCheck]) -> ColumnCheck:
    """Values of a tuple class, with one value for each field."""
    return _of(lambda kinds: kinds == {cls}, lambda values: _columns(values, fields))


def rows(names: tuple[str, ...], fields: Sequence[ColumnCheck]) -> ColumnCheck:
    """Rows of these names in this order, and of no other kind than INSERT."""

    def right(classes: set[type]) -> bool:
        return all(issubclass(cls, Row) and cls._fields == names and cls._row_kind is RowKind.INSERT for cls in classes)

    return _of(right, lambda values: _columns(values, fields))


def instances(cls: type, names: Sequence[str], fields: Sequence[ColumnCheck]) -> ColumnCheck:
    getters = [attrgetter(name) for name in names]
    pairs = list(zip(getters, fields, strict=True))
    return _of(lambda kinds: kinds == {cls}, lambda values: all(check(list(map(get, values))) for get, check in pairs))
