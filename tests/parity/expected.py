"""Programs that give something else here than on PyFlink. The list is strict: one that gives the same must leave it."""

from __future__ import annotations

from fnmatch import fnmatchcase

#: By program, or a pattern of programs: the part of the work that it waits for, and what differs.
DIFFERENCES: dict[str, str] = {}


def reason(name: str) -> str | None:
    return next((why for pattern, why in DIFFERENCES.items() if fnmatchcase(name, pattern)), None)
