"""What becomes of one state at a restore, in words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Fate(StrEnum):
    """KEPT and MIGRATED: its values are there, in the second case rewritten for a type that changed. NEW: it starts
    empty. DROPPED: it is left behind, because that was allowed. REFUSED: nothing starts from the snapshot, or the
    function fails that asks for it. UNKNOWN: nobody can say before it is asked for.
    """

    KEPT = "kept"
    MIGRATED = "migrated"
    NEW = "new"
    DROPPED = "dropped"
    REFUSED = "refused"
    UNKNOWN = "not known"


@dataclass(frozen=True)
class StateOutcome:
    """One state of one operator. ``kind`` is that of its descriptor, or how it spreads over subtasks."""

    state: str
    kind: str
    fate: Fate
    detail: str = ""
