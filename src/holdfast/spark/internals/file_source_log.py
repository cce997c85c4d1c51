"""The log of Spark's file source, cut behind one of its entries. Pure: files in, files out.

Each file of the log names the files that one slice of the source took, ``<n>.compact`` all that were taken up to ``n``.
Spark deletes files that a later compact one repeats.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from holdfast.errors import EpochError

_COMPACT = ".compact"
_VERSION = b"v1"
_INTERVAL = 10


def log_number(name: str) -> int | None:
    """Which entry a file of the log is; None for a file that is none of it."""
    number = name.removesuffix(_COMPACT)
    return int(number) if number.isdecimal() else None


def cut_log(files: Mapping[str, bytes], last: int) -> dict[str, bytes]:
    """A log that ends with entry ``last``, of one whose ``files`` may go further: a compact file, and the entries
    behind it.
    """
    entries = _entries(files, last)
    cut: dict[str, bytes] = {}
    compacted = last
    if last + 1 >= 2 * _INTERVAL:
        # Spark takes the distance of the last two compact files as that of all, whatever is configured, and expects
        # every file to be compact that is due. It reads the last one only.
        compacted = (last + 1) // _INTERVAL * _INTERVAL - 1
        cut[f"{compacted - _INTERVAL}{_COMPACT}"] = _file([])
    cut[f"{compacted}{_COMPACT}"] = _file([line for n in range(compacted + 1) for line in entries.get(n, ())])
    return cut | {str(n): _file(entries.get(n, [])) for n in range(compacted + 1, last + 1)}


def _entries(files: Mapping[str, bytes], last: int) -> dict[int, list[bytes]]:
    """The lines of all entries up to ``last``, by number."""
    numbered = {number: name for name in sorted(files) if (number := log_number(name)) is not None}
    begin = max((n for n, name in numbered.items() if n <= last and name.endswith(_COMPACT)), default=0)
    chosen = [numbered.get(number) for number in range(begin, last + 1)]
    if None in chosen:
        # What is missing was deleted behind a later compact file, which has all of it.
        later = [n for n, name in numbered.items() if n >= last and name.endswith(_COMPACT)]
        if not later:
            raise EpochError(
                f"The log of a file source has the entries {sorted(numbered)}, and cannot be cut behind {last}: "
                "something else deletes files of the query's checkpoint directory."
            )
        chosen = [numbered[min(later)]]
    entries: dict[int, list[bytes]] = {}
    for name in chosen:
        assert name is not None
        for line in _lines(name, files[name]):
            number = json.loads(line)["batchId"]
            if number <= last:
                entries.setdefault(number, []).append(line)
    return entries


def _lines(name: str, data: bytes) -> list[bytes]:
    version, *lines = data.split(b"\n")
    if version != _VERSION:
        raise EpochError(
            f"The log of a file source has a file '{name}' of version {version!r}; this version of Holdfast reads "
            f"{_VERSION!r}. Use the version of Spark that Holdfast names in its requirements."
        )
    return [line for line in lines if line]


def _file(lines: list[bytes]) -> bytes:
    return b"\n".join([_VERSION, *lines])
