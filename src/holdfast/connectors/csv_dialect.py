"""How records of CSV are written: the characters between and around fields, and what stands for none."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from typing import Any

from holdfast.errors import ConfigurationError
from holdfast.types.row import Row

#: A text that is longer is quoted without looking at it, as Flink's library does.
_LOOKED_AT = 24
_BACKSLASH = "\\"
#: Java writes other numbers with an exponent.
_PLAIN_FLOATS = (1e-3, 1e7)


@dataclass(frozen=True)
class CsvDialect:
    """Characters and words of one kind of CSV. What is not set is Flink's default."""

    separator: str = ","
    #: None: fields are never quoted.
    quote: str | None = '"'
    #: What makes the next character a plain one; None for no such character.
    escape: str | None = None
    #: What stands for None; where it is not set, nothing does, and None is written as an empty field.
    null: str | None = None
    #: Between the elements of an array.
    array_separator: str = ";"
    line_end: str = "\n"
    #: Whether lines that begin with ``#`` are no records.
    comments: bool = False
    #: Whether the first line of a file names its columns.
    header: bool = False
    #: Whether a header must have all columns, and no others, in their order.
    strict_header: bool = False
    #: Whether the first line of a file, behind the header, is no record.
    skip_first: bool = False

    def __post_init__(self) -> None:
        one = {"delimiter": self.separator, "quote": self.quote, "escape character": self.escape}
        for what, character in one.items():
            if character is not None and (len(character) != 1 or character in "\r\n" or not character.isascii()):
                raise ConfigurationError(
                    f"The CSV {what} is {character!r}; one ASCII character is expected, as ',' or '\\t'."
                )
        if self.separator == self.quote:
            raise ConfigurationError(f"The CSV delimiter and the quote are both {self.quote!r}; they must differ.")

    def with_arrays(self, separator: str) -> CsvDialect:
        """This dialect with another separator between the elements of an array."""
        return replace(self, array_separator=separator)

    def record(self, values: Sequence[Any]) -> str:
        """One record with its line end."""
        return self.separator.join(map(self.field, values)) + self.line_end

    def field(self, value: Any) -> str:
        """A number or boolean as it is, all else as text."""
        if value is None:
            return self.null or ""
        text = self.text(value)
        return text if isinstance(value, (bool, int, float, Decimal)) else self._quoted(text)

    def text(self, value: Any) -> str:
        """A value without quotes; the elements of a list, tuple or row with the array separator between them."""
        if isinstance(value, str):
            return value
        if value is None:
            return self.null or ""
        if isinstance(value, (list, tuple, Row)):
            return self.array_separator.join(map(self.text, value))
        return next((show(value) for kind, show in _TEXTS if isinstance(value, kind)), str(value))

    def _quoted(self, text: str) -> str:
        quote, escape = self.quote, self.escape
        if quote is None or (len(text) <= _LOOKED_AT and not self._needs_quotes(text)):
            return text
        doubled = text.replace(quote, quote * 2)
        return f"{quote}{doubled.replace(escape, escape * 2) if escape else doubled}{quote}"

    @cached_property
    def _needs_quotes(self) -> Callable[[str], Any]:
        """Finds a character that is not above all that mean something, or the one that escapes."""
        highest = max(map(ord, (self.separator, self.quote or self.separator, *self.line_end)))
        return re.compile(f"[\\x00-\\x{highest:02x}{re.escape(self.escape or _BACKSLASH)}]").search


def _float(value: float) -> str:
    """As Java writes it."""
    if not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or _PLAIN_FLOATS[0] <= abs(value) < _PLAIN_FLOATS[1]:
        return repr(float(value))
    digits, _, exponent = f"{Decimal(repr(float(value))).normalize():E}".partition("E")
    return f"{digits if '.' in digits else digits + '.0'}E{int(exponent)}"


def _moment(value: datetime) -> str:
    """As Java writes it: at least one digit behind the seconds, and no zeros at the end."""
    seconds, _, fraction = value.strftime("%Y-%m-%d %H:%M:%S.%f").rpartition(".")
    return f"{seconds}.{fraction.rstrip('0') or '0'}"


_TEXTS: tuple[tuple[type | tuple[type, ...], Callable[[Any], str]], ...] = (
    (bool, lambda value: "true" if value else "false"),
    (float, _float),
    ((bytes, bytearray), lambda value: base64.b64encode(value).decode()),
    (datetime, _moment),
)
