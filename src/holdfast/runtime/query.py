"""Queries in the middle of a program: rows that an engine transforms on their way into a task, and the operator that
takes them from there.

All rows of a query's stream go through the query in front of its operator's chain. What else reaches the task, headers
with watermarks and barriers among it, goes past the query and is processed when its rows are through.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from holdfast.runtime.batch import Batch
from holdfast.runtime.event_time_column import EventTimeColumn
from holdfast.runtime.event_times import Times
from holdfast.runtime.operator import MAX_WATERMARK, Operator
from holdfast.types.arrow import row_reader, schema_of
from holdfast.types.information import FieldsTypeInfo, RowTypeInfo, TypeInformation

#: A DataFrame in, a DataFrame out.
Transformation = Callable[[Any], Any]

#: The column of a stream whose values have no fields, as in Flink.
_ONLY_COLUMN = "f0"


@dataclass(frozen=True, slots=True)
class View:
    """A stream under the name by which queries read it."""

    name: str
    row_type: TypeInformation
    #: What the column of its rows' event times is called; None without one. It is the last column.
    event_time_column: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the fields of its rows, which are in front of the event time."""
        return self.row_type.field_names if isinstance(self.row_type, FieldsTypeInfo) else (_ONLY_COLUMN,)


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked of a view, and the rows that come of it."""

    text: str
    view: View
    output_type: RowTypeInfo
    #: What makes them, where the text is not SQL but tells of a DataFrame. It stays in the driver.
    transformation: Transformation | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Query, (self.text, self.view, self.output_type)

    @property
    def event_time(self) -> EventTimeColumn | None:
        """Rows have the event time that the query passes on in the view's column of that name."""
        name = self.view.event_time_column
        if name is None or name not in self.output_type.field_names:
            return None
        return EventTimeColumn(self.output_type.field_names.index(name), delay_ms=0)


class QueryReader:
    """Rows as the engine gives them back become batches."""

    def __init__(self, query: Query) -> None:
        self._schema = schema_of(query.output_type)
        self._read_rows = row_reader(query.output_type)
        self._event_time = query.event_time

    def read(self, arrow: pa.RecordBatch, watermark: int) -> Batch:
        """``watermark`` is the one in force: that of the epochs before."""
        columns = [column.cast(field.type) for column, field in zip(arrow.columns, self._schema, strict=True)]
        batch = Batch.of_arrow(pa.RecordBatch.from_arrays(columns, schema=self._schema), self._read_rows)
        if self._event_time is None:
            return batch
        times = self._event_time.milliseconds(arrow.column(self._event_time.place))
        return batch.timed(Times.of_column(times), np.full(len(batch), watermark, dtype=np.int64))


class QueryOperator(Operator):
    """Hands on what the query has made of its input."""

    def process(self, batch: Batch, input_index: int) -> None:
        self.output.collect(batch)

    def process_watermark(self, watermark: int) -> None:
        """Rows without event time have no watermark before they end."""
        if self.spec.event_time or watermark == MAX_WATERMARK:
            super().process_watermark(watermark)
