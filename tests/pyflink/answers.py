"""What Holdfast answers to each of PyFlink's names: found by looking, else declared."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from holdfast.coverage.answers import DECLARATIONS, Answer, Declaration, declaration_of, keys_of
from tests.pyflink.comparison import Found, compared, split

NAMES_FILE = Path(__file__).with_name("names.json")
_CONSTRUCTOR = "*.__init__(j_*)"


@dataclass(frozen=True)
class Answered:
    found: Found
    #: None: nothing is said of the name.
    answer: Answer | None
    note: str
    #: The key of the declaration that says it.
    key: str = ""


@cache
def names() -> dict[str, Any]:
    """What was read from PyFlink, with ``version``."""
    read: dict[str, Any] = json.loads(NAMES_FILE.read_text())
    return read


@cache
def answers() -> tuple[Answered, ...]:
    return tuple(map(answered, compared(names())))


def answered(found: Found) -> Answered:
    keys = list(_keys(found))
    exact = DECLARATIONS.get(keys[0])
    if exact is not None:
        return _said(found, exact, keys[0])
    if not found.difference:
        return Answered(found, Answer.SUPPORTED, "")
    if found.name == "__init__" and found.takes_java:
        return _said(found, DECLARATIONS[_CONSTRUCTOR], _CONSTRUCTOR)
    key = next((key for key in keys if key in DECLARATIONS), "")
    return _said(found, DECLARATIONS[key], key) if key else Answered(found, None, found.difference)


def advised(found: Found) -> Declaration | None:
    """What a program is told that uses the name."""
    return declaration_of(*_place(found))


def _keys(found: Found) -> Iterator[str]:
    if not found.name:
        yield found.module
        return
    yield from keys_of(*_place(found))
    if found.home:
        yield from keys_of(*_home(found))


def _place(found: Found) -> tuple[str, str, str]:
    return found.module, found.owner, found.name


def _home(found: Found) -> tuple[str, str, str]:
    module, name = split(found.home, names()["exports"])
    return module, "", name


def _said(found: Found, declaration: Declaration, key: str) -> Answered:
    return Answered(found, declaration.answer, declaration.note, key)
