"""Rows that are put together before an exchange, where known aggregates are all that is made of them.

Of windows by event time, rows are put together that are in the same windows: those of one pane of time. That must not
change which of them are late. Event time goes on from row to row, and windows end between them. As long as a pane has
not ended for the subtask that sends its rows, it has not for whoever receives them, whose event time is the lowest of
all that send to it: so these rows may come all at once, before event time goes on. Rows behind the end of their pane
are sent one by one, with the event time that they came at: whether they are late is found out where they arrive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from holdfast.runtime.aggregates import Aggregation, combine_rows, combine_rows_by, rows_as_combined
from holdfast.types.typeinfo import TypeInformation

Numbers = npt.NDArray[np.int64]

#: Times, and lengths of time, beyond it are not computed with in 64 bits.
FAR = 1 << 60


@dataclass(frozen=True)
class Panes:
    """Spans of event time, one after the other, each of which is in a window as a whole or not at all."""

    size: int
    offset: int

    def starts_of(self, times: Numbers) -> Numbers:
        return times - (times - self.offset) % self.size


class CombinedRows(NamedTuple):
    """With their times and the event time that each comes at, where rows have them."""

    rows: pa.RecordBatch
    timestamps: Sequence[int | None] | None = None
    watermarks: list[int] | None = None


@dataclass(frozen=True)
class Combination:
    """What the rows of an edge are put together for. Without panes those of a key are, whatever their times."""

    aggregation: Aggregation
    panes: Panes | None = None

    @property
    def type_info(self) -> TypeInformation:
        """Of rows that stand for several. Their time is the start of their pane."""
        return self.aggregation.combined_type()

    @property
    def needed_fields(self) -> list[str]:
        # Without any column nobody knows how many rows there are.
        return self.aggregation.needed_fields or list(self.aggregation.row_type.field_names[:1])

    def combined(self, rows: pa.RecordBatch) -> CombinedRows:
        """Of rows without event times. Windows that need them say so when such rows arrive."""
        combine = combine_rows if self.panes is None else rows_as_combined
        return CombinedRows(combine(self.aggregation, rows))

    def combined_in_time(
        self, rows: pa.RecordBatch, timestamps: Sequence[int | None], watermarks: Sequence[int]
    ) -> CombinedRows:
        """Of rows with event times. ``watermarks`` never go back."""
        if self.panes is None:
            combined, first = combine_rows(self.aggregation, rows), watermarks[0]
            return CombinedRows(combined, [None] * combined.num_rows, [first] * combined.num_rows)
        return self._by_pane(self.panes, rows, timestamps, watermarks)

    def _by_pane(
        self, panes: Panes, rows: pa.RecordBatch, timestamps: Sequence[int | None], watermarks: Sequence[int]
    ) -> CombinedRows:
        if None not in timestamps:
            times, passed = (np.array(some, dtype=np.int64) for some in (timestamps, watermarks))
            if max(-int(times.min()), int(times.max())) < FAR:
                starts = panes.starts_of(times)
                together = starts + (panes.size - 1) > passed
                found = self._together(rows, starts, together)
                if found is not None:
                    some, their_starts = found
                    late = ~together
                    alone = rows_as_combined(self.aggregation, rows.filter(pa.array(late)))
                    return CombinedRows(
                        pa.concat_batches([some, alone]),
                        [*their_starts, *times[late].tolist()],
                        [watermarks[0]] * len(their_starts) + passed[late].tolist(),
                    )
        return CombinedRows(rows_as_combined(self.aggregation, rows), timestamps, list(watermarks))

    def _together(
        self, rows: pa.RecordBatch, starts: Numbers, together: npt.NDArray[np.bool_]
    ) -> tuple[pa.RecordBatch, list[int]] | None:
        if not together.all():
            rows, starts = rows.filter(pa.array(together)), starts[together]
        found = combine_rows_by(self.aggregation, rows, pa.array(starts))
        return None if found is None else (found[0], found[1].to_pylist())
