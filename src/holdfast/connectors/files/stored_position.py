"""Positions of a file source as they stand in checkpoints."""

from __future__ import annotations

from typing import Any, NamedTuple

from holdfast.types.typeinfo import Types

STORED_TYPE = Types.ROW_NAMED(
    ["path", "size", "modified_ms", "offset", "seen", "inferred", "monitors"],
    [
        Types.STRING(),
        Types.LONG(),
        Types.LONG(),
        Types.LONG(),
        Types.BYTES(),
        Types.STRING(),
        Types.BOOLEAN(),
    ],
)


class StoredPosition(NamedTuple):
    """A file that is not read to its end, or, without a path, the rest of what a subtask knows. The fields are those of
    ``STORED_TYPE``.
    """

    path: str | None = None
    size: int | None = None
    modified_ms: int | None = None
    offset: int | None = None
    #: The files that were read (see seen.py).
    seen: bytes | None = None
    #: The columns, where they were taken from the first file.
    inferred: str | None = None
    #: Files that wait are not among the positions: whoever restores this looks for them.
    monitors: bool | None = None

    @staticmethod
    def of_pickled(pickled: dict[str, Any]) -> StoredPosition:
        """The position that a dict stood for when positions were pickled."""
        return StoredPosition(**pickled.get("file", pickled))
