"""Rows of a batch by key and window, without a loop over them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from holdfast.runtime.event_times import Numbers

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
