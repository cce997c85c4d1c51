"""An edge that sends one row for several."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from holdfast.errors import HoldfastError
from holdfast.runtime.batch import Batch, joined_times
from holdfast.runtime.envelope import ChannelStatus
from holdfast.runtime.local_aggregation import CombinedRows
from holdfast.runtime.plan import EdgeSpec, TaskOptions
from holdfast.runtime.router import Router
from holdfast.runtime.row_buffer import WaitingRows
from holdfast.types.arrow import row_reader, row_writer


class CombiningRouter(Router):
    """The rows of an epoch wait for each other. What is sent says nothing of watermarks between them but what rows
    carry, so they may wait beyond one.
    """

    def __init__(self, edge: EdgeSpec, subtask: int, channel: int, where: str, options: TaskOptions) -> None:
        super().__init__(edge, subtask, channel, where, options)
        assert edge.combine is not None
        self._combine = edge.combine
        self._needed = edge.combine.needed_fields
        self._waiting = WaitingRows(options.combining_rows, options.combining_bytes)
        self._write_given = row_writer(edge.given_type)
        self._read_combined = row_reader(edge.type_info)

    def collect(self, batch: Batch) -> None:
        if not len(batch):
            return
        rows = batch.arrow if batch.arrow is not None else self._write_given(batch.values)
        # What the aggregates do not need does not wait with the rest.
        needed = Batch(None, batch.times, batch.marks, arrow=rows.select(self._needed))
        if self._waiting.add(needed):
            self._send_combined()

    def flush(self) -> None:
        self._send_combined()
        super().flush()

    def close_epoch(self, status: ChannelStatus) -> None:
        self._send_combined()
        super().close_epoch(status)

    def _send_combined(self) -> None:
        batches = self._waiting.take()
        if not batches:
            return
        try:
            combined = self._combined(batches)
        except HoldfastError as error:
            error.add_note(f"in {self._where}")
            raise
        super().collect(
            Batch(None, combined.times, combined.marks, arrow=combined.rows, reader=self._read_combined)
        )

    def _combined(self, batches: list[Batch]) -> CombinedRows:
        rows = pa.concat_batches([batch.arrow for batch in batches])
        if not self._edge.event_time:
            return self._combine.combined(rows)
        times, marks = joined_times(batches)
        assert times is not None and marks is not None and marks.numbers is not None
        return self._combine.combined_in_time(rows, times, np.maximum.accumulate(marks.numbers))


def router_of(edge: EdgeSpec, subtask: int, channel: int, where: str, options: TaskOptions) -> Router:
    """What sends the rows of an edge."""
    return (Router if edge.combine is None else CombiningRouter)(edge, subtask, channel, where, options)
