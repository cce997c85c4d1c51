"""Sources of whole numbers: a bounded range, and an endless one at a chosen rate."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from holdfast.connectors.reading import ArrowBatches, Budget
from holdfast.errors import ProgramError
from holdfast.runtime.batch import Batch
from holdfast.runtime.source import ReaderContext, ReadLimit, Source, SourceReader
from holdfast.types.arrow import schema_of
from holdfast.types.information import TypeInformation
from holdfast.types.typeinfo import TupleTypeInfo, Types

_LONG_MIN, _LONG_MAX = -(2**63), 2**63 - 1

#: Both bounds belong to it.
Range = tuple[int, int]


def divide(ranges: Iterable[Range], subtask: int, parallelism: int) -> list[Range]:
    """The share of a subtask when all numbers of the ranges, in ascending order, are cut into equal contiguous
    parts."""
    ordered = sorted((first, last) for first, last in ranges)
    total = sum(last - first + 1 for first, last in ordered)
    begin, end = total * subtask // parallelism, total * (subtask + 1) // parallelism
    share: list[Range] = []
    before = 0
    for first, last in ordered:
        low = max(begin - before, 0)
        high = min(end - before, last - first + 1)
        if low < high:
            share.append((first + low, first + high - 1))
        before += last - first + 1
    return share


class NumberSequenceSource(Source):
    """The numbers from ``start`` to ``end``, both included, as LONG. Bounded.

    Each subtask reads a contiguous range in ascending order. Positions are the ranges still to be read; a restore
    divides their union anew, whatever the parallelism was.
    """

    bounded = True

    def __init__(self, start: int, end: int) -> None:
        _check_long("start", start)
        _check_long("end", end)
        if start > end:
            raise ProgramError(f"NumberSequenceSource({start}, {end}): start must not be greater than end.")
        self._range = (start, end)

    def output_type(self) -> TypeInformation:
        return Types.LONG()

    def position_type(self) -> TypeInformation:
        return TupleTypeInfo([Types.LONG(), Types.LONG()], ["first", "last"])

    @staticmethod
    def typed_position(pickled: Sequence[int]) -> tuple[int, ...]:
        return tuple(pickled)

    def create_reader(self, context: ReaderContext) -> NumberSequenceReader:
        remaining = [self._range] if context.restored is None else context.restored
        return NumberSequenceReader(divide(remaining, context.subtask, context.parallelism))


class NumberSequenceReader(SourceReader):
    """Reads its ranges one after the other."""

    def __init__(self, ranges: list[Range]) -> None:
        self._ranges = ranges
        self._batches = ArrowBatches(Types.LONG())
        self.ended = not ranges

    def read(self, limit: ReadLimit) -> Iterator[Batch]:
        budget = Budget(limit)
        while self._ranges and (rows := budget.next_chunk()):
            first, last = self._ranges[0]
            rows = min(rows, last - first + 1)
            # The bound of arange is exclusive and may lie beyond a long, so the numbers are counted from 0.
            numbers = np.arange(rows, dtype=np.int64) + first
            if first + rows > last:
                self._ranges = self._ranges[1:]
            else:
                self._ranges = [(first + rows, last), *self._ranges[1:]]
            self.ended = not self._ranges
            budget.spend(rows)
            yield self._batches(_column(numbers))

    def positions(self) -> list[Range]:
        return list(self._ranges)


#: Fixed, because positions are kept per virtual split: it is the highest useful parallelism.
VIRTUAL_SPLITS = 128


class SequenceSource(Source):
    """``start``, ``start + 1``, ... without an end, as LONG; at most ``rows_per_second`` over all subtasks.

    Virtual split s of 128 owns the numbers ``start + s + 128 k`` and remembers how many it gave. Split s belongs to
    subtask ``s % parallelism``, at any parallelism, so that no number is lost or repeated when it changes. A subtask
    gives its numbers in ascending order, save that splits which another subtask had read less far catch up first.

    ``clock`` gives seconds and must be picklable; what the rate allowed while the job stood still is caught up.
    """

    bounded = False
    max_parallelism = VIRTUAL_SPLITS

    def __init__(
        self, start: int = 0, rows_per_second: float | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        _check_long("start", start)
        if rows_per_second is not None and rows_per_second <= 0:
            raise ProgramError(f"SequenceSource: rows_per_second is {rows_per_second}; it must be positive or None.")
        self._start = start
        self._rate = rows_per_second
        self._clock = clock

    def output_type(self) -> TypeInformation:
        return Types.LONG()

    def position_type(self) -> TypeInformation:
        return TupleTypeInfo([Types.INT(), Types.LONG()], ["split", "given"])

    @staticmethod
    def typed_position(pickled: Sequence[int]) -> tuple[int, ...]:
        return tuple(pickled)

    def create_reader(self, context: ReaderContext) -> SequenceReader:
        given = dict.fromkeys(range(VIRTUAL_SPLITS), 0)
        given.update((split, count) for split, count in context.restored or [])
        mine = {split: count for split, count in given.items() if split % context.parallelism == context.subtask}
        rate = None if self._rate is None else self._rate * len(mine) / VIRTUAL_SPLITS
        return SequenceReader(self._start, mine, _Pace(rate, self._clock))


class SequenceReader(SourceReader):
    """Reads the virtual splits of one subtask, the lowest number first."""

    def __init__(self, start: int, given: dict[int, int], pace: _Pace) -> None:
        self._start = start
        self._splits: npt.NDArray[np.int64] = np.array(sorted(given), dtype=np.int64)
        self._given: npt.NDArray[np.int64] = np.array([given[split] for split in sorted(given)], dtype=np.int64)
        self._pace = pace
        self._batches = ArrowBatches(Types.LONG())

    def read(self, limit: ReadLimit) -> Iterator[Batch]:
        budget = Budget(limit)
        allowed = self._pace.allowance()
        while len(self._splits) and (rows := min(budget.next_chunk(), allowed)):
            numbers = self._take(rows)
            allowed -= rows
            self._pace.spend(rows)
            budget.spend(rows)
            yield self._batches(_column(numbers))

    def positions(self) -> list[tuple[int, int]]:
        return list(zip(self._splits.tolist(), self._given.tolist(), strict=True))

    def _take(self, rows: int) -> npt.NDArray[np.int64]:
        """The ``rows`` lowest numbers that were not given yet."""
        level = self._level_for(rows)
        behind = np.flatnonzero(self._given < level)
        given = self._given[behind]
        lowest = int(given.min())
        # One line per round over the splits: reading the grid line by line is reading numbers in ascending order.
        rounds = np.arange(lowest, level, dtype=np.int64)[:, None]
        grid = rounds * VIRTUAL_SPLITS + self._splits[behind]
        taken = grid[rounds >= given][:rows]
        counts = np.bincount(taken % VIRTUAL_SPLITS, minlength=VIRTUAL_SPLITS)
        self._given = self._given + counts[self._splits]
        return taken + self._start

    def _level_for(self, rows: int) -> int:
        """The lowest number of rounds up to which at least ``rows`` numbers are not given yet."""
        ordered = np.sort(self._given)
        behind = np.arange(1, len(ordered) + 1)
        # With the k splits that are furthest behind brought to one level, this many rows have been given.
        at_level_of = ordered * behind - np.cumsum(ordered)
        count = int(np.searchsorted(at_level_of, rows, side="left"))
        missing = rows - int(at_level_of[count - 1])
        return int(ordered[count - 1]) + -(-missing // count)


class _Pace:
    """How many rows a rate allows by now; any number without a rate."""

    def __init__(self, rate: float | None, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._clock = clock
        self._last: float | None = None
        self._credit = 0.0

    def allowance(self) -> int:
        if self._rate is None:
            return _LONG_MAX
        now = self._clock()
        if self._last is not None:
            # A wall clock may be set back; that must not take away what was allowed before.
            self._credit += self._rate * max(0.0, now - self._last)
        self._last = now
        return int(self._credit)

    def spend(self, rows: int) -> None:
        if self._rate is not None:
            self._credit -= rows


def _column(numbers: npt.NDArray[np.int64]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(numbers)], schema=schema_of(Types.LONG()))


def _check_long(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not _LONG_MIN <= value <= _LONG_MAX:
        raise ProgramError(f"{name} is {value!r}; it must be a whole number between -2^63 and 2^63 - 1.")
