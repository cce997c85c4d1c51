"""Functions that see the rows of a keyed stream as columns, all rows of an epoch at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from holdfast.errors import FunctionError
from holdfast.runtime.batch import Batch, joined_times
from holdfast.runtime.keyed import KeyedOperator
from holdfast.runtime.plan import OperatorSpec
from holdfast.runtime.row_buffer import WaitingRows
from holdfast.types.arrow import row_reader, schema_of, without_kinds
from holdfast.types.columns import Column
from holdfast.types.typeinfo import Types

_TIMES = Column(Types.LONG(), "the times of rows")


class KeyedBatchContext:
    """The context of ``process_batch``: what the rows have beside their columns."""

    def __init__(self) -> None:
        self._timestamps: pa.Array | None = None
        self._watermark: int | None = None

    def timestamps(self) -> pa.Array | None:
        """The event times of the rows, in milliseconds; None on a stream without them."""
        return self._timestamps

    def current_watermark(self) -> int | None:
        """The event time that the stream had reached when the first of the rows came."""
        return self._watermark


class KeyedBatchOperator(KeyedOperator):
    """Hosts a function of whole batches. The rows of an epoch wait for each other, but not beyond a watermark: the
    fewer calls, the fewer times a key's state is asked for.
    """

    row_method = "process_batch"

    def __init__(self, spec: OperatorSpec) -> None:
        super().__init__(spec)
        self._waiting = WaitingRows()
        self._read_rows = row_reader(spec.output_type)
        self._schema = schema_of(spec.output_type)

    def process(self, batch: Batch, input_index: int) -> None:
        if self._waiting.add(batch):
            self.end_rows()

    def process_watermark(self, watermark: int) -> None:
        self.end_rows()
        super().process_watermark(watermark)

    def finish(self) -> None:
        self.end_rows()
        super().finish()

    def end_rows(self) -> None:
        batches = self._waiting.take()
        if not batches:
            return
        rows = pa.concat_batches([without_kinds(batch.arrow) for batch in batches if batch.arrow is not None])
        keys = pa.concat_arrays([batch.key_column for batch in batches])
        context = KeyedBatchContext()
        if self.spec.event_time:
            times, marks = joined_times(batches)
            context._timestamps = None if times is None else times.column()
            context._watermark = self.watermark if marks is None else marks.listed[0]
        self.leave_row()
        try:
            results = list(_results(self.process_batch(keys, rows, context)))
        except BaseException as error:
            raise self.failure(error, f"one of {rows.num_rows} rows of a batch") from error
        for result in results:
            self._hand_on(result, context)

    def process_batch(self, keys: pa.Array, rows: pa.RecordBatch, context: KeyedBatchContext) -> Any:
        return self.row_function(0)(keys, rows, context)

    def _hand_on(self, result: Any, context: KeyedBatchContext) -> None:
        times: pa.Array | None = None
        if isinstance(result, tuple) and len(result) == 2:
            result, times = result
        columns = self._conform(result)
        if not self.spec.event_time:
            self.output.collect(Batch.of_arrow(columns, self._read_rows))
            return
        # Rows leave together: with the event time of the first of those that they came of, none is late for it.
        watermark = self.watermark if context._watermark is None else context._watermark
        timestamps = [None] * columns.num_rows if times is None else _TIMES.read(times)
        if len(timestamps) != columns.num_rows:
            raise FunctionError(
                f"{self.where}: process_batch() gave {columns.num_rows} rows with {len(timestamps)} times; give one "
                "time for each row."
            )
        watermarks = [watermark] * columns.num_rows
        self.output.collect(Batch(None, timestamps, watermarks, arrow=columns, reader=self._read_rows))

    def _conform(self, result: Any) -> pa.RecordBatch:
        """The result with the columns of the declared output type."""
        if not isinstance(result, pa.RecordBatch):
            raise FunctionError(
                f"{self.where}: process_batch() gave {type(result).__name__}; expected a pyarrow.RecordBatch, a Table, "
                "or a pair of one and the times of its rows."
            )
        if result.schema.equals(self._schema):
            return result
        if sorted(result.schema.names) != sorted(self._schema.names):
            raise FunctionError(
                f"{self.where}: process_batch() gave the columns {', '.join(result.schema.names)}; the output type "
                f"{self.spec.output_type.describe()} has {', '.join(self._schema.names)}."
            )
        try:
            return result.select(self._schema.names).cast(self._schema)
        except (pa.ArrowException, ValueError) as error:
            raise FunctionError(
                f"{self.where}: process_batch() gave columns that are not of the output type "
                f"{self.spec.output_type.describe()}: {error}"
            ) from error


def _results(given: Any) -> Iterator[Any]:
    """Each batch of what a function gave: nothing, one, a table, or any number of them."""
    if given is None:
        return
    if isinstance(given, (pa.RecordBatch, pa.Table, tuple)) or not isinstance(given, Iterable):
        given = (given,)
    for one in given:
        rows, *times = one if isinstance(one, tuple) else (one,)
        if isinstance(rows, pa.Table):
            rows = pa.RecordBatch.from_arrays([c.combine_chunks() for c in rows.columns], schema=rows.schema)
        yield (rows, *times) if times else rows
