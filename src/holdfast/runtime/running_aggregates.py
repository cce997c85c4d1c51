"""Running sums, minima and maxima of a field, by column: the rows that the loop of ``ReduceOperator`` gives, one for
each that comes, without a loop. Which of both a ``reduce()`` gets is chosen here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.errors import ProgramError
from holdfast.runtime.batch import Batch
from holdfast.runtime.field_reducers import FieldReducer
from holdfast.runtime.keyed import ReduceOperator
from holdfast.runtime.overflow import LIMIT, cannot_overflow
from holdfast.runtime.partial_aggregates import PartialFunction
from holdfast.runtime.partial_columns import ArrowColumn
from holdfast.runtime.plan import OperatorFactory, OperatorSpec
from holdfast.runtime.row_path import RowPath, RowsBy
from holdfast.types.arrow import row_reader, schema_of
from holdfast.types.typeinfo import FieldsTypeInfo, TypeInformation

#: A batch of fewer rows is faster in a loop.
_LEAST_ROWS = 256

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


def running(
    function: PartialFunction, values: Numbers, start: pa.Array, segments: Segments, limit: int = LIMIT
) -> Numbers | None:
    """What a row of the table keeps of the rows of a key up to each of them, in the order of the segments. ``start``
    has what was kept of each key before, null for nothing. None where a sum may come to the limit on its way.
    """
    assert isinstance(function.columns, ArrowColumn), "several numbers have no running form"
    either, known = function.columns.ufunc, start.is_valid().to_numpy(zero_copy_only=False)[segments.key]
    before = pc.fill_null(start, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    if either is np.add:
        return running_sums(values, segments) + before[segments.key] if cannot_overflow(values, before, limit) else None
    extremes = running_extremes(values, segments, either)
    return np.where(known, either(extremes, before[segments.key]), extremes)


class RunningOperator(ReduceOperator):
    """A reduce whose function is a known one over an integer field. What columns cannot do exactly, a null or a sum
    that may overflow, the loop does.
    """

    def __init__(self, spec: OperatorSpec, least_rows: int) -> None:
        super().__init__(spec)
        self._least_rows = least_rows
        self._read_rows = row_reader(spec.output_type)
        self._schema = schema_of(spec.output_type)
        self._field: int = self.function.index
        self._partial: PartialFunction = self.function.of_integers
        # From here on a sum is not a number of the field.
        self._limit = 1 << (self._schema.field(self._field).type.bit_width - 1)

    def process(self, batch: Batch, input_index: int) -> None:
        rows = None if len(batch) < self._least_rows or batch.arrow is None else self._reduced(batch, batch.arrow)
        if rows is None:
            super().process(batch, input_index)
        elif not self.spec.batch:
            self.output.collect(Batch(None, batch.times, batch.marks, arrow=rows, reader=self._read_rows))

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
        values = numbers.to_numpy().astype(np.int64)[segments.order]
        results = running(self._partial, values, before.flatten()[self._field], segments, self._limit)
        if results is None:
            return None
        after = np.empty(len(results), dtype=np.int64)
        after[segments.order] = results
        # The other fields are those of the first row of a key ever.
        origin = np.where(known, rows.num_rows + np.arange(len(keys)), segments.firsts)
        kept = [pa.concat_arrays([mine, its]) for mine, its in zip(rows.columns, before.flatten(), strict=True)]
        last = self._with_field(kept, origin, results[segments.is_last])
        self._state.put_many(keys, pa.StructArray.from_arrays(last, fields=list(before.type)))
        return pa.RecordBatch.from_arrays(self._with_field(kept, origin[codes], after), schema=self._schema)

    def _with_field(self, columns: list[pa.Array], rows: Numbers, numbers: Numbers) -> list[pa.Array]:
        taken: list[Any] = [column.take(pa.array(rows)) for column in columns]
        taken[self._field] = pa.array(numbers).cast(self._schema.field(self._field).type)
        return taken


def reduce_operator(
    function: Any, row_type: TypeInformation, key_type: TypeInformation, path: RowPath
) -> OperatorFactory:
    """The operator of ``reduce()``: the fastest that gives what rows give one by one, or the one that it is told."""
    ways = (RowsBy.COLUMN, RowsBy.ONE) if _works_by_column(function, row_type, key_type) else (RowsBy.ONE,)
    way = ways[0] if path.by is None else path.by
    if way not in ways:
        raise ProgramError(
            f"Rows were told to go into reduce() {way.value}. With this function and these types they can go "
            f"{' or '.join(one.value for one in ways)}."
        )
    if way is RowsBy.ONE:
        return ReduceOperator
    return partial(RunningOperator, least_rows=_LEAST_ROWS if path.least_rows is None else path.least_rows)


def _works_by_column(function: Any, row_type: TypeInformation, key_type: TypeInformation) -> bool:
    """Whether columns give the same exactly: of integers, in rows whose keys have a column too."""
    if not isinstance(function, FieldReducer) or function.of_integers is None:
        return False
    if not isinstance(row_type, FieldsTypeInfo) or row_type.of_classes:
        return False
    return row_type.field_types[function.index].number is int and key_type.key_in_arrow
