"""How values look in text: as Flink's classes in Java write them, which others parse."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from holdfast.types.instant import Instant
from holdfast.types.row import Row

#: The text of a value that is not None.
Show = Callable[[Any], str]

_EPOCH = dt.datetime(1970, 1, 1)


def or_null(show: Show) -> Show:
    """The text of values that may be None."""
    return lambda value: "null" if value is None else show(value)


def boolean(value: bool) -> str:
    return "true" if value else "false"


def double(value: float) -> str:
    if 1e-3 <= abs(value) < 1e7:
        return repr(value)
    return _far_number(value, repr(value), value == float(f"{value:.1e}"))


def single(value: float) -> str:
    """A number of 32 bits, with as many digits as tell it from its neighbours among them."""
    number = np.float32(value)
    if 1e-3 <= abs(value) < 1e7:
        shortest = f"{Decimal(str(number)):f}"
        return shortest if "." in shortest else f"{shortest}.0"
    return _far_number(value, str(number), bool(number == np.float32(f"{value:.1e}")))


def _far_number(value: float, shortest: str, two_digits: bool) -> str:
    """A number with an exponent, or none at all. At least two digits are shown, the nearest that are this number."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return shortest
    number = Decimal(f"{value:.1e}" if two_digits else shortest).normalize()
    sign, digits, _ = number.as_tuple()
    first, *rest = map(str, digits)
    return f"{'-' if sign else ''}{first}.{''.join(rest) or '0'}E{number.adjusted()}"


def time(value: dt.time) -> str:
    """To the second."""
    return value.replace(microsecond=0).isoformat()


def timestamp(value: dt.datetime) -> str:
    text = value.isoformat(" ")
    return text.rstrip("0") if value.microsecond else f"{text}.0"


def utc_timestamp(value: dt.datetime) -> str:
    return _moment(value.replace(tzinfo=None, microsecond=0), value.microsecond * 1000)


def instant(value: Instant) -> str:
    return _moment(_EPOCH + dt.timedelta(seconds=value.seconds), value.nanos)


def _moment(second: dt.datetime, nanos: int) -> str:
    """A fraction has three, six or nine digits."""
    digits = f"{nanos:09}"
    fraction = next(digits[:width] for width in (0, 3, 6, 9) if not digits[width:].strip("0"))
    return f"{second.isoformat()}{'.' if fraction else ''}{fraction}Z"


def octets(value: bytes) -> str:
    """An array of numbers from -128 to 127."""
    return str([octet - 256 if octet > 127 else octet for octet in value])


def elements(element: Show) -> Show:
    show = or_null(element)
    return lambda value: f"[{', '.join(map(show, value))}]"


def mapping(key: Show, value: Show) -> Show:
    show_key, show_value = or_null(key), or_null(value)
    return lambda pairs: f"{{{', '.join(f'{show_key(k)}={show_value(v)}' for k, v in pairs.items())}}}"


def tuples(fields: Sequence[Show]) -> Show:
    shows = [or_null(show) for show in fields]
    return lambda value: f"({','.join([show(part) for show, part in zip(shows, value, strict=True)])})"


def rows(fields: Sequence[Show]) -> Show:
    shows = [or_null(show) for show in fields]

    def show(row: Row) -> str:
        parts = [show(part) for show, part in zip(shows, row, strict=True)]
        return f"{Row.get_row_kind(row)}[{', '.join(parts)}]"

    return show


def python_row(row: Row) -> str:
    """A row whose values are shown as Python shows them, those of rows in it without their names."""
    return f"{Row.get_row_kind(row)}[{','.join(str(_without_names(value)) for value in row)}]"


def _without_names(value: Any) -> Any:
    """The value with its rows as PyFlink's driver has them, which makes them of values alone."""
    if isinstance(value, Row):
        return Row(*map(_without_names, value))
    if type(value) in (list, tuple):
        return type(value)(map(_without_names, value))
    if type(value) is dict:
        return {_without_names(key): _without_names(item) for key, item in value.items()}
    return value
