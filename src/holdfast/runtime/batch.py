"""Rows on their way through a chain, a batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa

from holdfast.runtime.event_times import Numbers, Times

#: Of rows: their times, or None where a stream has none.
AnyTimes = Sequence[int | None] | Sequence[int] | Numbers | Times | None
#: Turns the columns of an Arrow batch into Python rows.
RowReader = Callable[[pa.RecordBatch], list[Any]]


@dataclass(frozen=True, slots=True)
class Origin:
    """What a source says of the rows of a batch, to the operator that gives them their event time."""

    #: The split that all of them are of.
    split: str
    #: All splits from which more may come to this subtask.
    splits: frozenset[str]
    #: The time of each record, in milliseconds; negative where it has none.
    record_times: Sequence[int]


class ReceivedKeys:
    """The keys of rows that came through an exchange, of which Python keys are made on first use, once."""

    __slots__ = ("_column", "_read", "_values", "_wire")

    def __init__(
        self,
        wire: pa.RecordBatch,
        read: Callable[[pa.RecordBatch], list[Any]],
        column: Callable[[pa.RecordBatch], pa.Array],
    ) -> None:
        self._wire = wire
        self._read = read
        self._column = column
        self._values: list[Any] | None = None

    def values(self) -> list[Any]:
        if self._values is None:
            self._values = self._read(self._wire)
        return self._values

    def column(self) -> pa.Array:
        return self._column(self._wire)

    def part(self, start: int, stop: int) -> ReceivedKeys:
        """Keys of consecutive rows."""
        return ReceivedKeys(self._wire.slice(start, stop - start), self._read, self._column)

    @property
    def form(self) -> Any:
        """An object that is equal for keys that came in the same way."""
        return self._read

    def followed_by(self, others: Iterable[ReceivedKeys]) -> ReceivedKeys:
        """All of them, of one form."""
        wire = pa.concat_batches([self._wire, *(other._wire for other in others)])
        return ReceivedKeys(wire, self._read, self._column)

    def rows(self, columns: pa.Schema) -> pa.RecordBatch:
        """The columns of the rows, which came beside their keys."""
        return self._wire.select(columns.names)


class Batch:
    """Rows with what travels beside them. Python rows are made from Arrow on first use, once.

    ``timestamps[i]`` is the event time of row i in milliseconds, None for a row that has none. ``watermarks[i]`` is
    the watermark in force when row i arrives, so that whether a row is late depends neither on batches nor on epochs.
    ``keys`` are the rows' keys behind a ``key_by``. Each of the three is None when the stream has none. ``times`` and
    ``marks`` are timestamps and watermarks for those who compute with columns. ``origin`` is there between a source and
    what directly follows it.
    """

    __slots__ = ("_keys", "_reader", "_values", "arrow", "marks", "origin", "times")

    def __init__(
        self,
        values: list[Any] | None,
        timestamps: AnyTimes = None,
        watermarks: AnyTimes = None,
        keys: list[Any] | ReceivedKeys | None = None,
        arrow: pa.RecordBatch | None = None,
        reader: RowReader | None = None,
    ) -> None:
        self._values = values
        self._reader = reader
        self.arrow = arrow
        self.times = _times_of(timestamps)
        self.marks = _times_of(watermarks)
        self._keys = keys
        self.origin: Origin | None = None

    @classmethod
    def of_arrow(cls, arrow: pa.RecordBatch, reader: RowReader) -> Batch:
        return cls(None, arrow=arrow, reader=reader)

    @property
    def timestamps(self) -> Sequence[int | None] | None:
        return None if self.times is None else self.times.listed

    @timestamps.setter
    def timestamps(self, times: Sequence[int | None] | None) -> None:
        self.times = _times_of(times)

    @property
    def watermarks(self) -> Sequence[int] | None:
        return None if self.marks is None else self.marks.listed  # type: ignore[return-value]  # every row has one

    @watermarks.setter
    def watermarks(self, times: Sequence[int] | None) -> None:
        self.marks = _times_of(times)

    def timed(self, timestamps: AnyTimes, watermarks: AnyTimes) -> Batch:
        """The rows with other times, and without keys."""
        return Batch(self._values, timestamps, watermarks, None, self.arrow, self._reader)

    @property
    def values(self) -> list[Any]:
        if self._values is None:
            assert self._reader is not None and self.arrow is not None
            self._values = self._reader(self.arrow)
        return self._values

    def values_at(self, positions: Sequence[int]) -> list[Any]:
        """Some of the rows; only they are made from Arrow."""
        if self._values is not None:
            return [self._values[position] for position in positions]
        assert self._reader is not None and self.arrow is not None
        return self._reader(self.arrow.take(pa.array(positions, pa.int64())))

    def part(self, start: int, stop: int) -> Batch:
        """Some rows that follow each other, of rows with keys."""
        assert self._keys is not None
        keys = self._keys
        return Batch(
            None if self._values is None else self._values[start:stop],
            None if self.times is None else self.times.part(start, stop),
            None if self.marks is None else self.marks.part(start, stop),
            keys.part(start, stop) if isinstance(keys, ReceivedKeys) else keys[start:stop],
            None if self.arrow is None else self.arrow.slice(start, stop - start),
            self._reader,
        )

    def read_as(self, convert: Callable[[list[Any]], list[Any]]) -> Batch:
        """Rows made of these, when they are needed."""
        times = self.times, self.marks
        if self._values is not None or self._reader is None:
            return Batch(convert(self.values), *times, self._keys)
        read = self._reader
        return Batch(None, *times, self._keys, self.arrow, lambda arrow: convert(read(arrow)))

    @classmethod
    def joined(cls, batches: Iterable[Batch]) -> Iterator[Batch]:
        """All rows with keys and times in their order, as one batch where they came in one form."""
        for form, same in groupby(batches, key=lambda batch: batch._form):
            first, *others = same
            if not others:
                yield first
            elif form is None:
                yield cls.in_python([first, *others])
            else:
                yield first._followed_by(others)

    @classmethod
    def in_python(cls, batches: Sequence[Batch]) -> Batch:
        """All rows with keys and times in their order, as Python rows in one batch."""
        values = [row for batch in batches for row in batch.values]
        return Batch(values, *joined_times(batches), [key for batch in batches for key in batch.keys or ()])

    @property
    def _form(self) -> Any:
        """An object that is equal for batches that came through an exchange in the same way; None for Python rows."""
        return self._keys.form if isinstance(self._keys, ReceivedKeys) and self._values is None else None

    def _followed_by(self, others: list[Batch]) -> Batch:
        assert self.arrow is not None and isinstance(self._keys, ReceivedKeys)
        keys = self._keys.followed_by([other._keys for other in others if isinstance(other._keys, ReceivedKeys)])
        return Batch(None, *joined_times([self, *others]), keys, keys.rows(self.arrow.schema), self._reader)

    @property
    def keys(self) -> list[Any] | None:
        return self._keys.values() if isinstance(self._keys, ReceivedKeys) else self._keys

    @property
    def key_column(self) -> pa.Array:
        """The keys as a column, of rows that came through an exchange."""
        assert isinstance(self._keys, ReceivedKeys)
        return self._keys.column()

    def pieces(self, rows: int) -> Iterator[Batch]:
        """The rows in order, so many at a time where they came through an exchange and are not Python rows yet."""
        if self._values is not None or not isinstance(self._keys, ReceivedKeys) or len(self) <= rows:
            yield self
            return
        for start in range(0, len(self), rows):
            yield self.part(start, start + rows)

    def at(self, positions: list[int], values: list[Any]) -> Batch:
        """Rows that take the place of those at ``positions``, with their times."""
        timestamps, watermarks = self.timestamps, self.watermarks
        return Batch(
            values,
            None if timestamps is None else [timestamps[i] for i in positions],
            None if watermarks is None else [watermarks[i] for i in positions],
        )

    def __len__(self) -> int:
        if self._values is not None:
            return len(self._values)
        assert self.arrow is not None
        return int(self.arrow.num_rows)


def _times_of(given: AnyTimes) -> Times | None:
    return given if given is None or isinstance(given, Times) else Times(given)


def joined_times(batches: Sequence[Batch]) -> tuple[Times | None, Times | None]:
    """Event times and watermarks of batches that all have them, or all have none."""
    times = [batch.times for batch in batches if batch.times is not None]
    marks = [batch.marks for batch in batches if batch.marks is not None]
    return (
        Times.joined(times) if len(times) == len(batches) else None,
        Times.joined(marks) if len(marks) == len(batches) else None,
    )


class SideBatch(Batch):
    """Rows that a source gives to a side output."""

    __slots__ = ("tag_id",)

    def __init__(self, tag_id: str, values: list[Any]) -> None:
        super().__init__(values)
        self.tag_id = tag_id
