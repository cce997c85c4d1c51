"""Rows on their way through a chain, a batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

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
        """Those of some rows that follow each other."""
        return ReceivedKeys(self._wire.slice(start, stop - start), self._read, self._column)


class Batch:
    """Rows with what travels beside them. Python rows are made from Arrow on first use, once.

    ``timestamps[i]`` is the event time of row i in milliseconds, None for a row that has none. ``watermarks[i]`` is
    the watermark in force when row i arrives, so that whether a row is late depends neither on batches nor on epochs.
    ``keys`` are the rows' keys behind a ``key_by``. Each of the three is None when the stream has none. ``origin`` is
    there between a source and what directly follows it.
    """

    __slots__ = ("_keys", "_reader", "_values", "arrow", "origin", "timestamps", "watermarks")

    def __init__(
        self,
        values: list[Any] | None,
        timestamps: Sequence[int | None] | None = None,
        watermarks: list[int] | None = None,
        keys: list[Any] | ReceivedKeys | None = None,
        arrow: pa.RecordBatch | None = None,
        reader: RowReader | None = None,
    ) -> None:
        self._values = values
        self._reader = reader
        self.arrow = arrow
        self.timestamps = timestamps
        self.watermarks = watermarks
        self._keys = keys
        self.origin: Origin | None = None

    @classmethod
    def of_arrow(cls, arrow: pa.RecordBatch, reader: RowReader) -> Batch:
        return cls(None, arrow=arrow, reader=reader)

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
        """Some rows that follow each other, of a batch that came through an exchange."""
        assert self.arrow is not None and isinstance(self._keys, ReceivedKeys)
        timestamps, watermarks = self.timestamps, self.watermarks
        return Batch(
            None,
            None if timestamps is None else timestamps[start:stop],
            None if watermarks is None else watermarks[start:stop],
            self._keys.part(start, stop),
            self.arrow.slice(start, stop - start),
            self._reader,
        )

    @property
    def keys(self) -> list[Any] | None:
        return self._keys.values() if isinstance(self._keys, ReceivedKeys) else self._keys

    @property
    def key_column(self) -> pa.Array:
        """The keys as a column, of rows that came through an exchange."""
        assert isinstance(self._keys, ReceivedKeys)
        return self._keys.column()

    def pieces(self, rows: int) -> Iterator[Batch]:
        """The same rows in order, so many at a time where they came through an exchange and are not Python rows yet."""
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


class SideBatch(Batch):
    """Rows that a source gives to a side output."""

    __slots__ = ("tag_id",)

    def __init__(self, tag_id: str, values: list[Any]) -> None:
        super().__init__(values)
        self.tag_id = tag_id
