"""Lists and maps in one line of text, as Flink's configuration has them: ``a;b``, ``key:value,key:value``.

A part with a delimiter in it stands in quotes, single or double; a quote inside of them is written twice. YAML's own
form of lists and maps, ``[a, b]`` and ``{key: value}``, is understood as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

_QUOTES = "'\""


def split(text: str, delimiter: str) -> list[str]:
    """The parts of a text, without quotes and without spaces around them. ValueError where a quote is not closed."""
    if text.startswith("["):
        return [str(part) for part in _yaml(text, list)]
    return [part for part in map(unquoted, pieces(text, delimiter)) if part]


def pieces(text: str, delimiter: str) -> Iterator[str]:
    """The parts of a text as they are written, to be split further."""
    quote, begin = "", 0
    for place, sign in enumerate(text):
        if quote:
            # A quote that is written twice closes, and opens again at once.
            quote = "" if sign == quote else quote
        elif sign in _QUOTES:
            quote = sign
        elif sign == delimiter:
            yield text[begin:place].strip()
            begin = place + 1
    if quote:
        raise ValueError(text)
    yield text[begin:].strip()


def unquoted(part: str) -> str:
    if len(part) < 2 or part[0] not in _QUOTES or part[-1] != part[0]:
        return part
    return part[1:-1].replace(part[0] * 2, part[0])


def quoted(part: str, delimiters: str) -> str:
    """A part as it is written where ``delimiters`` have a meaning."""
    if not part or any(sign in part for sign in delimiters + _QUOTES) or part != part.strip():
        return "'" + part.replace("'", "''") + "'"
    return part


def parse_map(text: str) -> dict[str, str]:
    """ValueError for what is no list of ``key:value``."""
    if text.startswith("{"):
        return _texts(_yaml(text, dict))
    found: dict[str, str] = {}
    for entry in filter(None, pieces(text, ",")):
        key, *values = pieces(entry, ":")
        if not values:
            # An entry may be quoted as a whole.
            key, *values = pieces(unquoted(entry), ":")
        if not unquoted(key) or not values:
            raise ValueError(entry)
        # Only the first colon parts them: the second belongs to a value such as hdfs://host/file.
        found[unquoted(key)] = unquoted(":".join(values))
    return found


def show_map(values: Mapping[str, str]) -> str:
    return ",".join(f"{quoted(key, ',:;')}:{quoted(value, ',:;')}" for key, value in values.items())


def parse_maps(text: str) -> tuple[dict[str, str], ...]:
    """A list of maps, with semicolons between them."""
    if text.startswith("["):
        return tuple(map(_texts, _yaml(text, list)))
    return tuple(parse_map(part) for part in pieces(text, ";") if part)


def show_maps(maps: Iterable[Mapping[str, str]]) -> str:
    return ";".join(map(show_map, maps))


def _yaml(text: str, kind: type) -> Any:
    try:
        # All scalars stay text.
        found = yaml.load(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        raise ValueError(text) from error
    if not isinstance(found, kind):
        raise ValueError(text)
    return found


def _texts(found: Any) -> dict[str, str]:
    if not isinstance(found, dict):
        raise ValueError(found)
    return {str(key): str(value) for key, value in found.items()}
