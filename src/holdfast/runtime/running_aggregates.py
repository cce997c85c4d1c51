"""Running sums, minima and maxima of a field, by column: the rows that the loop of ``ReduceOperator`` gives, one for
each that comes, without a loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.runtime.batch import Batch
from holdfast.runtime.keyed import ReduceOperator
from holdfast.runtime.overflow import cannot_overflow
from holdfast.runtime.plan import OperatorSpec
from holdfast.types.arrow import row_reader, schema_of

#: A batch of fewer rows is faster in a loop.
LEAST_ROWS = 256

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Segments:
    """Rows in the order of their keys, those of one key in the order in which they came."""

    #: Where the rows were.
    order: Numbers
    #: Of each of them, which key it has.
    key: Numbers
    #: Of each of them, how many rows of its key are before it.
    place: Numbers

    @classmethod
    def of(cls, codes: Numbers) -> Segments:
        order = np.argsort(codes, kind="stable")
        key = codes[order]
        starts = np.flatnonzero(np.diff(key, prepend=-1))
        lengths = np.diff(starts, append=len(key))
        return cls(order, key, np.arange(len(key)) - np.repeat(starts, lengths))

    @property
    def firsts(self) -> Numbers:
        """For each key, where its first row was."""
        firsts: Numbers = self.order[self.place == 0]
        return firsts

    @property
    def is_last(self) -> npt.NDArray[np.bool_]:
        lasts: npt.NDArray[np.bool_] = np.diff(self.key, append=-1) != 0
        return lasts


def running_sums(values: Numbers, segments: Segments) -> Numbers:
    """The sum of each row with those of its key before it, in the order of the segments."""
    sums = np.cumsum(values)
    before_key = (sums - values)[np.arange(len(values)) - segments.place]
    running: Numbers = sums - before_key
    return running


def running_extremes(values: Numbers, segments: Segments, either: np.ufunc) -> Numbers:
    """As ``running_sums``, with ``np.minimum`` or ``np.maximum``. Each pass doubles how far a row has looked back."""
    extremes, reach = values.copy(), 1
    longest = int(segments.place.max(initial=0)) + 1
    while reach < longest:
        looked = extremes.copy()
        within = segments.place[reach:] >= reach
        looked[reach:][within] = either(extremes[reach:][within], extremes[:-reach][within])
        extremes, reach = looked, 2 * reach
    return extremes


class RunningOperator(ReduceOperator):
    """A reduce whose function is a known one over an integer field. What columns cannot do exactly, a null or a sum
    that may overflow, the loop does.
    """

    def __init__(self, spec: OperatorSpec) -> None:
        super().__init__(spec)
        self._read_rows = row_reader(spec.output_type)
        self._schema = schema_of(spec.output_type)
        self._field: int = self.function.index
        self._either: np.ufunc = self.function.partial.columns.ufunc
        # From here on a sum is not a number of the field.
        self._limit = 1 << (self._schema.field(self._field).type.bit_width - 1)

    def process(self, batch: Batch, input_index: int) -> None:
        rows = None if len(batch) < LEAST_ROWS or batch.arrow is None else self._reduced(batch, batch.arrow)
        if rows is None:
            super().process(batch, input_index)
        elif not self.spec.batch:
            self.output.collect(
                Batch(None, batch.times, batch.marks, arrow=rows, reader=self._read_rows)
            )

    def _reduced(self, batch: Batch, rows: pa.RecordBatch) -> pa.RecordBatch | None:
        """The rows that the loop would give; None, with nothing done, where it must."""
        numbers = rows.column(self._field)
        if numbers.null_count:
            return None
        encoded = batch.key_column.dictionary_encode()
        keys, codes = encoded.dictionary, encoded.indices.to_numpy().astype(np.int64)
        before = self._state.get_many(keys)
        if before.flatten()[self._field].null_count != before.null_count:
            return None
        segments = Segments.of(codes)
        known = before.is_valid().to_numpy(zero_copy_only=False)
        running = self._running(numbers, before, known, segments)
        if running is None:
            return None
        after = np.empty(len(running), dtype=np.int64)
        after[segments.order] = running
        # The other fields are those of the first row of a key ever.
        origin = np.where(known, rows.num_rows + np.arange(len(keys)), segments.firsts)
        kept = [pa.concat_arrays([mine, its]) for mine, its in zip(rows.columns, before.flatten(), strict=True)]
        last = self._with_field(kept, origin, running[segments.is_last])
        self._state.put_many(keys, pa.StructArray.from_arrays(last, fields=list(before.type)))
        return pa.RecordBatch.from_arrays(self._with_field(kept, origin[codes], after), schema=self._schema)

    def _running(
        self, numbers: pa.Array, before: pa.Array, known: npt.NDArray[np.bool_], segments: Segments
    ) -> Numbers | None:
        """The running value of each row, in the order of the segments."""
        values = numbers.to_numpy().astype(np.int64)[segments.order]
        start = pc.fill_null(before.flatten()[self._field], 0).to_numpy(zero_copy_only=False).astype(np.int64)
        either = self._either
        if either is np.add:
            if not cannot_overflow(values, start, self._limit):
                return None
            running: Numbers = running_sums(values, segments) + start[segments.key]
            return running
        running = running_extremes(values, segments, either)
        return np.where(known[segments.key], either(running, start[segments.key]), running)

    def _with_field(self, columns: list[pa.Array], rows: Numbers, numbers: Numbers) -> list[pa.Array]:
        taken: list[Any] = [column.take(pa.array(rows)) for column in columns]
        taken[self._field] = pa.array(numbers).cast(self._schema.field(self._field).type)
        return taken
