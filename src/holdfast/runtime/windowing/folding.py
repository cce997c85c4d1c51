"""Rows of a batch folded into what is kept of them, by key and window, without a loop over them.

Each result is the one that a loop gives, to the last bit: values go into it one after the other, in the order of the
rows, beginning with what was kept before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.runtime.aggregates import Partial
from holdfast.runtime.event_times import Numbers

#: Sums that stay below it have not passed 64 bits on their way.
_SAFE = 1 << 62
#: Of a table for all keys in all windows: so many entries for each row are cheaper than to sort the rows.
_TABLE_ENTRIES = 8


@dataclass(frozen=True)
class Groups:
    """Rows by window and key. Groups of one window are neighbours."""

    #: Of each row, which group it is in.
    members: Numbers
    #: Of each group, the start of its window and the number of its key.
    starts: Numbers
    keys: Numbers

    @classmethod
    def of(cls, starts: Numbers, keys: Numbers, slide: int) -> Groups:
        """``starts`` are those of windows of which one starts every ``slide``, ``keys`` are numbers from 0."""
        first = int(starts.min())
        windows = (starts - first) // slide
        most_windows, most_keys = int(windows.max()) + 1, int(keys.max()) + 1
        if most_windows * most_keys <= _TABLE_ENTRIES * len(keys):
            places = windows * most_keys + keys
            there = np.zeros(most_windows * most_keys, dtype=np.bool_)
            there[places] = True
            found = np.flatnonzero(there)
            numbers = np.cumsum(there) - 1
            return cls(numbers[places], first + found // most_keys * slide, found % most_keys)
        # Windows may be far from each other: by their numbers the places of keys in them cannot overflow.
        distinct, numbers = np.unique(windows, return_inverse=True)
        found, members = np.unique(numbers * most_keys + keys, return_inverse=True)
        return cls(members, first + distinct[found // most_keys] * slide, found % most_keys)

    def in_order(self, rows: Numbers) -> tuple[list[int], list[int]]:
        """The numbers of the rows, given as they are in ``members``, group by group, and where each group ends."""
        ends = np.cumsum(np.bincount(self.members, minlength=len(self.keys)))
        return rows[np.argsort(self.members, kind="stable")].tolist(), ends.tolist()

    def windows(self) -> list[tuple[int, int, int]]:
        """The start of each window, with the first of its groups and the one behind the last."""
        firsts = np.flatnonzero(np.diff(self.starts, prepend=self.starts[0] - 1))
        bounds = [*firsts.tolist(), len(self.starts)]
        return list(zip(self.starts[firsts].tolist(), bounds, bounds[1:], strict=False))


@dataclass(frozen=True)
class Values:
    """A field of rows: its numbers, None for a field of others, which are only counted; and where there are values,
    None for everywhere.
    """

    numbers: npt.NDArray[Any] | None
    there: npt.NDArray[np.bool_] | None

    @classmethod
    def of(cls, column: pa.Array, rows: Numbers) -> Values:
        """The values of ``rows``."""
        there = column.is_valid().to_numpy(zero_copy_only=False)[rows] if column.null_count else None
        if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            return cls(None, there)
        wide = column.cast(pa.int64() if pa.types.is_integer(column.type) else pa.float64())
        return cls((pc.fill_null(wide, 0) if wide.null_count else wide).to_numpy()[rows], there)


def fold(partial: Partial, kept: Sequence[Any], members: Numbers, column: Values | None) -> list[Any] | None:
    """What is kept of each group, of what was kept before, None for nothing, and of the values of its members. None
    where a loop must do it.
    """
    there = slice(None) if column is None or column.there is None else column.there
    members = members[there]
    if partial.function in ("count", "count_all"):
        counts = np.array([value or 0 for value in kept], dtype=np.int64)
        return (counts + np.bincount(members, minlength=len(kept))).tolist()  # type: ignore[no-any-return]  # numpy
    assert column is not None and column.numbers is not None, "all but a count is of numbers"
    values = column.numbers[there]
    nothing, step = _how(partial.function, values.dtype == np.float64)
    folded = np.array([nothing if value is None else value for value in kept], dtype=values.dtype)
    if partial.function == "sum" and values.dtype == np.int64 and not _is_safe(folded, values):
        return None
    # Infinities give what they give in a loop, without a warning.
    with np.errstate(over="ignore", invalid="ignore"):
        step.at(folded, members, values)
    if values.dtype == np.float64 and partial.function != "sum":
        folded += 0.0  # -0.0 becomes 0.0: which of two equal numbers is taken depends on the machine
    results: list[Any] = folded.tolist()
    if None in kept:
        came = np.bincount(members, minlength=len(kept))
        for group in np.flatnonzero(came == 0).tolist():
            if kept[group] is None:
                results[group] = None
    return results


def _how(function: str, floating: bool) -> tuple[Any, np.ufunc]:
    """What changes no value that it is put together with, and what puts two together."""
    if function == "sum":
        # Of zeros, only the negative one leaves a negative zero what it is.
        return (-0.0 if floating else 0), np.add
    if floating:
        return np.nan, np.fmin if function == "min" else np.fmax
    limits = np.iinfo(np.int64)
    return (limits.max, np.minimum) if function == "min" else (limits.min, np.maximum)


def _is_safe(before: Numbers, values: Numbers) -> bool:
    """Whether no sum can come near 64 bits, whatever the order."""
    if not len(values) or not len(before):
        return True
    largest, start = (max(abs(int(some.min())), abs(int(some.max()))) for some in (values, before))
    return largest * len(values) + start < _SAFE


def distinct_keys(column: pa.Array) -> tuple[pa.Array, Numbers]:
    """The keys of a column, each once, and for each row the number of its key. Keys of several fields are structs."""
    if not pa.types.is_struct(column.type):
        encoded = column.dictionary_encode()
        return encoded.dictionary, encoded.indices.to_numpy().astype(np.int64)
    numbers = np.zeros(len(column), dtype=np.int64)
    for field in column.flatten():
        encoded = field.dictionary_encode(null_encoding="encode")
        places = encoded.indices.to_numpy().astype(np.int64)
        _, numbers = np.unique(numbers * len(encoded.dictionary) + places, return_inverse=True)
    _, firsts = np.unique(numbers, return_index=True)
    return column.take(pa.array(firsts)), numbers
