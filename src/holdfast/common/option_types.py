"""What an option is: its key, how its text is read, its default, and its older spellings."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from holdfast.common.structured_text import parse_map, parse_maps, quoted, show_map, show_maps, split
from holdfast.errors import ConfigurationError

T = TypeVar("T")

_NANOS = {
    **dict.fromkeys(["ns", "nano", "nanos", "nanosecond", "nanoseconds"], 1),
    **dict.fromkeys(["us", "µs", "micro", "micros", "microsecond", "microseconds"], 1_000),
    **dict.fromkeys(["", "ms", "milli", "millis", "millisecond", "milliseconds"], 1_000_000),
    **dict.fromkeys(["s", "sec", "secs", "second", "seconds"], 1_000_000_000),
    **dict.fromkeys(["m", "min", "minute", "minutes"], 60 * 1_000_000_000),
    **dict.fromkeys(["h", "hour", "hours"], 3_600 * 1_000_000_000),
    **dict.fromkeys(["d", "day", "days"], 86_400 * 1_000_000_000),
}
_BYTES = {
    **dict.fromkeys(["", "b", "bytes"], 1),
    **dict.fromkeys(["k", "kb", "kibibytes"], 1 << 10),
    **dict.fromkeys(["m", "mb", "mebibytes"], 1 << 20),
    **dict.fromkeys(["g", "gb", "gibibytes"], 1 << 30),
    **dict.fromkeys(["t", "tb", "tebibytes"], 1 << 40),
}


@dataclass(frozen=True)
class Kind(Generic[T]):
    """``expected`` completes the sentence "expected ..."; ``read`` raises ValueError or KeyError for other text."""

    label: str
    expected: str
    read: Callable[[str], T]
    show: Callable[[Any], str] = str


@dataclass(frozen=True)
class Option(Generic[T]):
    """One setting. ``older`` are spellings that mean the same; ``least`` is the smallest value allowed."""

    key: str
    kind: Kind[Any]
    default: T
    description: str
    older: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    #: What to show as the default where it is worked out when the job starts.
    default_text: str | None = None

    def parse(self, text: str, spelled: str | None = None) -> T:
        """The value that ``text`` stands for. ``spelled`` is the key as the user wrote it, for the error."""
        try:
            value = self.kind.read(text.strip())
        except (ValueError, KeyError, OverflowError):
            raise self._error(text, spelled, self.kind.expected) from None
        if self.least is not None and value < self.least:
            raise self._error(text, spelled, f"a value of at least {self.kind.show(self.least)}")
        if self.most is not None and value > self.most:
            raise self._error(text, spelled, f"a value of at most {self.kind.show(self.most)}")
        parsed: T = value
        return parsed

    def _error(self, text: str, spelled: str | None, expected: str) -> ConfigurationError:
        return ConfigurationError(f"The option '{spelled or self.key}' is '{text}'; expected {expected}")


def parse_duration(text: str) -> int:
    """Milliseconds of '10 min', '5s', '500 ms' or a plain number of milliseconds; fractions of one are dropped."""
    return _with_unit(text, _NANOS) // 1_000_000


def parse_memory(text: str) -> int:
    """Bytes of '5 mb', '20kb' or a plain number of bytes; a kb is 1024 bytes."""
    return _with_unit(text, _BYTES)


def _with_unit(text: str, units: Mapping[str, int]) -> int:
    match = re.fullmatch(r"(\d+)\s*([a-zµ]*)", text.strip().lower())
    if match is None:
        raise ValueError(text)
    return int(match.group(1)) * units[match.group(2)]


def format_duration(millis: int) -> str:
    for size, unit in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")):
        if millis and millis % size == 0:
            return f"{millis // size} {unit}"
    return f"{millis} ms"


def format_memory(size: int) -> str:
    for factor, unit in ((1 << 30, "gb"), (1 << 20, "mb"), (1 << 10, "kb")):
        if size and size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size} bytes"


def _parts(text: str) -> list[str]:
    if text.startswith("["):
        return split(text, ",")
    # A list of a YAML file is joined with semicolons.
    return [part.strip() for part in re.split("[,;]", text) if part.strip()]


def _parse_boolean(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


DURATION = Kind("duration", "a duration such as '10 min', '5 s' or '500 ms'", parse_duration, format_duration)
MEMORY = Kind("memory size", "a memory size such as '5 mb' or '20 kb'", parse_memory, format_memory)
BOOLEAN = Kind("boolean", "'true' or 'false'", _parse_boolean, lambda value: str(value).lower())
INTEGER = Kind("integer", "a whole number", int)
FLOAT = Kind("number", "a number", float)
TEXT = Kind("text", "text", str)
NAMES = Kind(
    "list of texts", "texts with commas between them", lambda text: tuple(_parts(text)), lambda names: ",".join(names)
)
PLACES = Kind(
    "list of addresses",
    "paths or addresses with semicolons between them",
    lambda text: tuple(split(text, ";")),
    lambda places: ";".join(quoted(place, ";") for place in places),
)
MAP = Kind("map", "pairs such as 'key:value,key:value'", parse_map, show_map)
MAPS = Kind(
    "list of maps", "pairs such as 'key:value,key:value', with semicolons between the maps", parse_maps, show_maps
)


def choice(values: Mapping[str, T]) -> Kind[T]:
    """One of some words; capital letters do not matter, nor does '_' for '-'. The first word of a value is its name."""
    by_word = {_plain(word): value for word, value in values.items()}

    def name_of(value: Any) -> str:
        return next(word for word, candidate in values.items() if candidate == value)

    names = dict.fromkeys(name_of(value) for value in values.values())
    return Kind(
        "one of " + ", ".join(f"`{name}`" for name in names),
        "one of " + ", ".join(values),
        lambda text: by_word[_plain(text)],
        name_of,
    )


def _plain(word: str) -> str:
    return word.lower().replace("_", "-")
