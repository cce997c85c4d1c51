"""Event time of Spark's streams: the column that a program has given to ``withWatermark()``.

As in Spark, event time goes on between micro-batches: a row is late, or not, for what the micro-batches before had.
So the rows of one may come in any order, and be combined by Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_DELAY = "spark.watermarkDelayMs"
#: Spark's name of the type.
_TIMESTAMP = "timestamp"


@dataclass(frozen=True)
class EventTimeColumn:
    """Where it is in the rows, and by how much rows may be older than the newest one."""

    place: int
    delay_ms: int

    @classmethod
    def of(cls, data_frame: Any) -> EventTimeColumn | None:
        """None of a stream without event time."""
        # Windows of the column have its mark as well, and are no times.
        found = [
            (place, field)
            for place, field in enumerate(data_frame.schema)
            if _DELAY in field.metadata and field.dataType.typeName() == _TIMESTAMP
        ]
        if not found:
            return None
        # Its copies have its mark too. A second withWatermark() takes it from the first one's column.
        place, field = found[0]
        return cls(place, int(field.metadata[_DELAY]))

    def milliseconds(self, column: pa.Array) -> pa.Array:
        """Milliseconds of times as Spark hands them to Python; null where there is none."""
        micros = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
        millis = pc.fill_null(micros, 0).to_numpy() // 1000
        return pa.array(millis, mask=column.is_null().to_numpy(zero_copy_only=False))

    def promised(self, latest: int) -> int:
        """The watermark behind rows of which the newest is of ``latest``."""
        return latest - self.delay_ms - 1
