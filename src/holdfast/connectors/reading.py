"""What all of Holdfast's own sources need: the budget of an epoch, and batches of one type."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa

from holdfast.runtime.batch import Batch, RowReader
from holdfast.runtime.source import ReadLimit
from holdfast.types.arrow import row_reader
from holdfast.types.information import TypeInformation

#: No source puts more rows into one batch: large enough for vectorised code, small enough to bound memory.
MAX_BATCH_ROWS = 65_536


class Budget:
    """What is left of an epoch's limit.

    The deadline is looked at after the first chunk only, so that an epoch that began late still gets on.
    """

    def __init__(self, limit: ReadLimit) -> None:
        self._limit = limit
        self._spent = 0

    def next_chunk(self) -> int:
        """How many rows the next batch may have; 0 when the epoch has had enough."""
        if self._spent and time.monotonic() >= self._limit.deadline:
            return 0
        return max(0, min(self._limit.rows - self._spent, MAX_BATCH_ROWS))

    def spend(self, rows: int) -> None:
        self._spent += rows


class ArrowBatches:
    """Makes batches from the columns of one type. Picklable, unlike the row reader that it holds."""

    def __init__(self, type_info: TypeInformation) -> None:
        self._type = type_info
        self._reader: RowReader = row_reader(type_info)

    def __call__(self, arrow: pa.RecordBatch) -> Batch:
        return Batch.of_arrow(arrow, self._reader)

    def __getstate__(self) -> dict[str, Any]:
        return {"_type": self._type}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._type = state["_type"]
        self._reader = row_reader(self._type)
