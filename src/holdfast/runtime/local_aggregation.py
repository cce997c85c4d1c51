"""Rows that are put together before an exchange, where known aggregates are all that is made of them.

Of windows by event time, rows are put together that are in the same windows: those of one pane of time. That must not
change which of them are late. Event time goes on from row to row, and windows end between them. As long as a pane has
not ended for the subtask that sends its rows, it has not for whoever receives them, whose event time is the lowest of
all that send to it: so these rows may come all at once, at any event time before the end of their pane. Rows behind the
end of their pane are sent one by one, at the event time that they came at: whether they are late is found out where
they arrive. What is in a window that ends has an earlier end, and comes before that. A sender that has been idle may be
behind the receiver: then all rows of a pane are late there, and none counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from holdfast.runtime.aggregates import Aggregation
from holdfast.runtime.event_times import Numbers, Times
from holdfast.runtime.grouping import combine_rows, combine_rows_by, rows_as_combined
from holdfast.types.typeinfo import TypeInformation

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
    """Combined rows, with their times and the event time that each comes at, where rows have them."""

    rows: pa.RecordBatch
    times: Times | None = None
    marks: Numbers | None = None


@dataclass(frozen=True)
class Combination:
    """What the rows of an edge are put together for. Without panes those of a key are, whatever their times."""

    aggregation: Aggregation
    panes: Panes | None = None
    #: Whoever gets the rows finds out whether a sum passes 64 bits: where one may, rows go one by one.
    of_windows: bool = False

    @property
    def type_info(self) -> TypeInformation:
        """The type of partially aggregated rows. Their time is the start of their pane."""
        return self.aggregation.combined_type()

    @property
    def needed_fields(self) -> list[str]:
        # Without any column nobody knows how many rows there are.
        return self.aggregation.needed_fields or list(self.aggregation.row_type.field_names[:1])

    def combined(self, rows: pa.RecordBatch) -> CombinedRows:
        """Partial aggregates of rows without event times. Windows that need them say so when such rows arrive."""
        found = self._by_key(rows, None) if self.panes is None else rows_as_combined(self.aggregation, rows)
        return CombinedRows(found)

    def combined_in_time(self, rows: pa.RecordBatch, times: Times, passed: Numbers) -> CombinedRows:
        """Partial aggregates of rows with event times. ``passed`` are their watermarks, which never go back."""
        if self.panes is None:
            combined = self._by_key(rows, times.numbers if self.aggregation.timed else None)
            return CombinedRows(combined, Times([None] * len(combined)), np.full(len(combined), passed[0]))
        numbers = times.numbers
        found = None if numbers is None else self._by_pane(self.panes, rows, numbers, passed)
        if found is None:
            return CombinedRows(rows_as_combined(self.aggregation, rows, numbers), times, passed)
        return found

    def _by_key(self, rows: pa.RecordBatch, times: Numbers | None) -> pa.RecordBatch:
        if not self.of_windows:
            return combine_rows(self.aggregation, rows, times)
        # Windows of all rows have no key: all of them are of one group.
        found = combine_rows_by(self.aggregation, rows, pa.repeat(0, len(rows)), times)
        return rows_as_combined(self.aggregation, rows, times) if found is None else found[0]

    def _by_pane(self, panes: Panes, rows: pa.RecordBatch, times: Numbers, passed: Numbers) -> CombinedRows | None:
        """Rows by the event time that they come at. None where all of them must go one by one."""
        if max(-int(times.min()), int(times.max())) >= FAR:
            return None
        starts = panes.starts_of(times)
        alone = starts + (panes.size - 1) <= passed
        others, when = rows, times
        if alone.any():
            others, when, starts = rows.filter(pa.array(~alone)), times[~alone], starts[~alone]
        found = combine_rows_by(self.aggregation, others, pa.array(starts), when)
        if found is None:
            return None
        combined, starts = found[0], found[1].to_numpy()
        # As late as they may come, and no later than the last of all rows: then windows end between them as they did.
        came = np.minimum(starts + (panes.size - 2), passed[-1])
        if alone.any():
            each = rows_as_combined(self.aggregation, rows.filter(pa.array(alone)), times[alone])
            combined = pa.concat_batches([combined, each])
            starts, came = np.append(starts, times[alone]), np.append(came, passed[alone])
        if (came[1:] < came[:-1]).any():
            order = np.argsort(came, kind="stable")
            combined, starts, came = combined.take(pa.array(order)), starts[order], came[order]
        return CombinedRows(combined, Times(starts), came)
