"""PyFlink's names and what becomes of them here: supported, accepted without effect, or refused.

This is the one declaration: the reference page is made of it, a test compares it with the code, and what is logged when
a call has no effect is taken from it.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import Enum

from holdfast.datastream.coverage_names import ACCEPTED, REFUSED, SUPPORTED
from holdfast.datastream.coverage_window_names import WINDOW_NAMES

logger = logging.getLogger(__name__)


class Support(Enum):
    SUPPORTED = "supported"
    #: The call is taken and changes nothing that a program can see.
    ACCEPTED = "accepted"
    #: An error says what to do instead: to ignore the call would change results.
    REFUSED = "refused"


@dataclass(frozen=True)
class Coverage:
    """One name. ``signature`` is PyFlink's, without ``self``; an attribute has none."""

    owner: str
    name: str
    signature: str
    support: Support
    note: str = ""

    @property
    def path(self) -> str:
        return f"{self.owner}.{self.name}"


def _parsed(owner: str, text: str, support: Support, note: str = "") -> Coverage:
    name, bracket, _ = text.partition("(")
    return Coverage(owner, name, text[len(name) :] if bracket else "", support, note)


def _with_note(text: str, note: str, support: Support) -> Coverage:
    owner, _, rest = text.partition(".")
    return _parsed(owner, rest, support, note)


#: All names, in the order of the declaration.
COVERAGE: tuple[Coverage, ...] = (
    *(
        _parsed(owner, line, Support.SUPPORTED)
        for owner, lines in {**SUPPORTED, **WINDOW_NAMES}.items()
        for line in lines.split("; ")
    ),
    *(_with_note(text, note, Support.ACCEPTED) for text, note in ACCEPTED.items()),
    *(_with_note(text, note, Support.REFUSED) for text, note in REFUSED.items()),
)
_NOTES = {entry.path: entry.note for entry in COVERAGE}


def note_accepted(path: str) -> None:
    """Log that a call has no effect, and why."""
    logger.info("%s() has no effect: %s.", path, _NOTES[path])


def refusal(path: str) -> str:
    """Why a name is refused, and what to do instead."""
    return f"{path}() is not available: {_NOTES[path]}."
