"""Event time of Spark's streams: the column that a program has given to ``withWatermark()``.

As in Spark, event time goes on between micro-batches: a row is late, or not, for what the micro-batches before had.
So the rows of one may come in any order, and be combined by Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.errors import ProgramError

_DELAY = "spark.watermarkDelayMs"
#: What withWatermark() is in a plan.
_NODE = "EventTimeWatermark"
#: Spark's names of types.
_INSTANT, _WITHOUT_ZONE = "timestamp", "timestamp_ntz"


@dataclass(frozen=True)
class EventTimeColumn:
    """Where it is in the rows, and by how much rows may be older than the newest one."""

    name: str
    place: int
    delay_ms: int
    #: Whether it is an instant. Times without a zone are taken as those of UTC.
    is_instant: bool

    @classmethod
    def of(cls, stream: str, data_frame: Any) -> EventTimeColumn | None:
        """None of a stream without event time. ``stream`` is its name."""
        found = [(place, field) for place, field in enumerate(data_frame.schema) if _DELAY in field.metadata]
        if not found:
            return None
        if len(found) > 1 and data_frame._jdf.queryExecution().analyzed().toString().count(_NODE) > 1:
            names = ", ".join(f"'{field.name}'" for _, field in found)
            raise ProgramError(
                f"The stream '{stream}' has several withWatermark(), and {names} are columns of event time; it can "
                "have one. Leave withWatermark() or the other columns out."
            )
        # Of a column and its copies, whichever comes first.
        place, field = found[0]
        return cls(field.name, place, int(field.metadata[_DELAY]), _is_instant(stream, field))

    def milliseconds(self, column: pa.Array) -> pa.Array:
        """Of times as Spark hands them to Python; null where there is none."""
        micros = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
        millis = pc.fill_null(micros, 0).to_numpy() // 1000
        return pa.array(millis, mask=column.is_null().to_numpy(zero_copy_only=False))

    def promised(self, latest: int) -> int:
        """The watermark behind rows of which the newest is of ``latest``."""
        return latest - self.delay_ms - 1


def _is_instant(stream: str, field: Any) -> bool:
    if field.dataType.typeName() not in (_INSTANT, _WITHOUT_ZONE):
        raise ProgramError(
            f"The stream '{stream}' has withWatermark() on '{field.name}', which is {field.dataType.simpleString()}; "
            "expected a timestamp."
        )
    return bool(field.dataType.typeName() == _INSTANT)
