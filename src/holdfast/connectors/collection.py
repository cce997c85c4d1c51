"""A source of values that the program holds in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from holdfast.connectors.reading import MAX_BATCH_ROWS, ArrowBatches, Budget
from holdfast.errors import RestoreError
from holdfast.runtime.batch import Batch
from holdfast.runtime.source import ReaderContext, ReadLimit, Source, SourceReader
from holdfast.types.arrow import exchange_writer
from holdfast.types.information import TypeInformation
from holdfast.types.resolve import resolve
from holdfast.types.typeinfo import Types

#: At most MAX_BATCH_ROWS rows: columns where a type was declared, else the values themselves.
_Chunk: TypeAlias = pa.RecordBatch | list[Any]


class CollectionSource(Source):
    """Bounded, one subtask, in the order of the collection. The position is the index of the next value.

    With a type the values become columns here, on the driver, so that a value that is not of the type is an error of
    the program and not of a task; rows then are what the type says (a ``Row`` for a tuple declared as a row). Without a
    type they stay the objects they are. They travel inside the source: for more than memory holds, use files.
    """

    bounded = True
    max_parallelism = 1

    def __init__(self, values: Iterable[Any], type_info: Any = None) -> None:
        rows = list(values)
        self._type: TypeInformation = resolve(type_info)
        self._length = len(rows)
        self._chunks: list[_Chunk] = [rows[i : i + MAX_BATCH_ROWS] for i in range(0, len(rows), MAX_BATCH_ROWS)]
        self._typed = self._type != resolve(None)
        if self._typed:
            write = exchange_writer(self._type)
            self._chunks = [write(chunk) for chunk in self._chunks]

    def output_type(self) -> TypeInformation | None:
        return self._type if self._typed else None

    def position_type(self) -> TypeInformation:
        return Types.LONG()

    def create_reader(self, context: ReaderContext) -> CollectionReader:
        """Subtask 0 reads; any other has nothing to do."""
        batches = ArrowBatches(self._type) if self._typed else None
        if context.subtask != 0:
            return CollectionReader([], 0, 0, batches)
        index = max(context.restored or [0])
        if index > self._length:
            raise RestoreError(
                f"The restored collection source had read {index} values, but the collection has only {self._length}. "
                "Start with the same collection, or with a longer one that begins with the same values."
            )
        return CollectionReader(self._chunks, index, self._length, batches)


class CollectionReader(SourceReader):
    """Reads chunks from an index on; forgets, when it is pickled, those that were read."""

    def __init__(self, chunks: Sequence[_Chunk], index: int, length: int, batches: ArrowBatches | None) -> None:
        self._skipped = index // MAX_BATCH_ROWS
        self._chunks = list(chunks[self._skipped :])
        self._index = index
        self._length = length
        self._batches = batches
        self._reading = length > 0
        self.ended = index >= length

    def read(self, limit: ReadLimit) -> Iterator[Batch]:
        budget = Budget(limit)
        while not self.ended and (rows := budget.next_chunk()):
            batch = self._next(rows)
            self._index += len(batch)
            self.ended = self._index >= self._length
            budget.spend(len(batch))
            yield batch

    def _next(self, rows: int) -> Batch:
        number, start = divmod(self._index, MAX_BATCH_ROWS)
        chunk = self._chunks[number - self._skipped]
        if isinstance(chunk, list):
            return Batch(chunk[start : start + rows])
        assert self._batches is not None
        return self._batches(chunk.slice(start, rows))

    def positions(self) -> list[int]:
        return [self._index] if self._reading else []

    def __getstate__(self) -> dict[str, Any]:
        read = self._index // MAX_BATCH_ROWS - self._skipped
        return {**self.__dict__, "_chunks": self._chunks[read:], "_skipped": self._skipped + read}
