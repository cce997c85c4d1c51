"""Event times of rows, a batch at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers = npt.NDArray[np.int64]


class Times:
    """A time for each row, None for a row that has none: as numbers and as a list, either of which is made of the other
    when it is needed, once.
    """

    __slots__ = ("_listed", "_numbers")

    def __init__(self, times: Sequence[int | None] | Numbers) -> None:
        self._numbers: Numbers | None = None
        self._listed: Sequence[int | None] | None = None
        if isinstance(times, np.ndarray):
            self._numbers = times
        else:
            self._listed = times

    @classmethod
    def of_column(cls, column: pa.Array) -> Times:
        return cls(column.to_pylist() if column.null_count else column.to_numpy())

    @classmethod
    def joined(cls, several: Sequence[Times]) -> Times:
        """The times of one batch after the other."""
        if len(several) == 1:
            return several[0]
        if all(times._numbers is not None for times in several):
            return cls(np.concatenate([times._numbers for times in several if times._numbers is not None]))
        return cls([time for times in several for time in times.listed])

    @property
    def listed(self) -> Sequence[int | None]:
        if self._listed is None:
            assert self._numbers is not None
            self._listed = self._numbers.tolist()
        return self._listed

    @property
    def numbers(self) -> Numbers | None:
        """None where a row has no time."""
        if self._numbers is None and self._listed is not None and None not in self._listed:
            self._numbers = np.array(self._listed, dtype=np.int64)
        return self._numbers

    def part(self, start: int, stop: int) -> Times:
        return Times((self._numbers if self._numbers is not None else self.listed)[start:stop])

    def column(self) -> pa.Array:
        return pa.array(self.listed if self._numbers is None else self._numbers, pa.int64())

    def __len__(self) -> int:
        return len(self.listed if self._numbers is None else self._numbers)
