"""How single values look inside stored bytes: as the plain values that msgpack knows."""

from __future__ import annotations

import datetime as dt
import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np

from holdfast.types.date_times import (
    date_of,
    day_micros_of,
    days_of,
    micros_of,
    time_of,
    timestamp_of,
    utc_timestamp_of,
)
from holdfast.types.instant import Instant
from holdfast.types.xxhash64 import big_integer_bytes

if TYPE_CHECKING:
    from holdfast.types.contract import TypeInformation


class Mismatch(Exception):
    """A value, or a part of one, that is not of its type."""

    def __init__(self, type_info: TypeInformation, value: Any, why: str = "") -> None:
        super().__init__(f"expected {type_info.describe()}, got {reprlib.repr(value)} ({type(value).__name__}){why}")


@dataclass(frozen=True, slots=True)
class Form:
    """``stored_type`` is what msgspec decodes to. ``unpack`` is None where stored values are the values themselves.

    Values of the class ``plain``, and tuples of ``plain_fields``, are stored as they are; ``pack`` casts the others, or
    raises Mismatch. ``ranged`` forms hold integers, whose width is checked by decoding what was encoded. A stored value
    that is ``framed`` becomes bytes by msgpack; others are bytes.
    """

    stored_type: Any
    pack: Callable[[Any], Any]
    unpack: Callable[[Any], Any] | None = None
    plain: type | None = None
    plain_fields: tuple[type | None, ...] | None = None
    ranged: bool = False
    framed: bool = True


#: what is cast to a plain class without losing anything
_CASTS: dict[type, tuple[type, ...]] = {
    int: (int, np.integer),
    float: (float, int, np.floating, np.integer),
    bool: (bool, np.bool_),
    str: (str,),
    bytes: (bytes, bytearray, memoryview),
}


#: Makes the form of a type, which it names in errors.
MakeForm = Callable[["TypeInformation"], Form]


def whole_number_form(bits: int) -> MakeForm:
    """Integers of a width."""
    limit = 1 << (bits - 1)
    ranged = Annotated[int, msgspec.Meta(ge=-limit, le=limit - 1)]
    return lambda type_info: Form(ranged, _caster(type_info, int), plain=int, ranged=True)


def plain_form(plain: type) -> MakeForm:
    """Values of a class that msgpack knows."""
    return lambda type_info: Form(plain, _caster(type_info, plain), plain=plain)


def _caster(type_info: TypeInformation, plain: type) -> Callable[[Any], Any]:
    accepted = _CASTS[plain]

    def pack(value: Any) -> Any:
        if type(value) is plain:
            return value
        if isinstance(value, accepted) and (plain is bool or not isinstance(value, (bool, np.bool_))):
            return _double(type_info, value) if plain is float else str.__str__(value) if plain is str else plain(value)
        raise Mismatch(type_info, value)

    return pack


def _double(type_info: TypeInformation, value: Any) -> float:
    """An integer may be one that no double is: beyond 2^53 there are gaps."""
    try:
        double = float(value)
    except OverflowError as error:
        raise Mismatch(type_info, value, f" ({error})") from error
    if isinstance(value, (int, np.integer)) and double != int(value):
        raise Mismatch(type_info, value, f", of which the nearest is {double:.0f}; give a float to have it rounded")
    return double


def _converted(
    accepted: type, stored: Any, to_stored: Callable[[Any], Any], from_stored: Callable[[Any], Any]
) -> MakeForm:
    """A form for values of one class, which become stored values by a function and come back by another."""

    def make(type_info: TypeInformation) -> Form:
        def pack(value: Any) -> Any:
            if not isinstance(value, accepted):
                raise Mismatch(type_info, value)
            try:
                return to_stored(value)
            except ValueError as error:
                raise Mismatch(type_info, value, f" ({error})") from error

        return Form(stored, pack, from_stored)

    return make


def _one_character(text: str) -> str:
    if len(text) != 1:
        raise ValueError(f"{len(text)} characters instead of one")
    return text


def _big_integer(value: int) -> bytes:
    if isinstance(value, bool):
        raise ValueError("a boolean")
    return big_integer_bytes(int(value))


def _date(value: dt.date) -> int:
    if isinstance(value, dt.datetime):
        raise ValueError("a timestamp, not a date; take its .date()")
    return days_of(value)


def _time(value: dt.time) -> int:
    if value.tzinfo is not None:
        raise ValueError("a time with a time zone")
    return day_micros_of(value)


CHARACTER = _converted(str, str, _one_character, str)
BIG_INTEGER = _converted(int, bytes, _big_integer, lambda stored: int.from_bytes(stored, "big", signed=True))
BIG_DECIMAL = _converted(Decimal, str, str, Decimal)
INSTANT = _converted(Instant, tuple[int, int], lambda i: (i.seconds, i.nanos), lambda s: Instant(*s))
DATE = _converted(dt.date, int, _date, date_of)
TIME = _converted(dt.time, int, _time, time_of)
TIMESTAMP = _converted(dt.datetime, int, micros_of, timestamp_of)
UTC_TIMESTAMP = _converted(dt.datetime, int, micros_of, utc_timestamp_of)


def decimal_form(precision: int, scale: int) -> MakeForm:
    """Values are checked, not rounded: a state gives back what was put in."""

    def to_stored(value: Decimal) -> str:
        if not value.is_finite():
            raise ValueError("not a finite number")
        digits, exponent = value.as_tuple()[1:]
        fraction, whole = max(0, -int(exponent)), value.adjusted() + 1
        if fraction > scale or (value and whole > precision - scale):
            raise ValueError(f"{len(digits)} digits, {fraction} of them behind the point")
        return str(value)

    return _converted(Decimal, str, to_stored, Decimal)
