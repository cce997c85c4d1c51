"""What a plan says of DataFrames, which no task of its own reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.runtime.event_time_column import EventTimeColumn


@dataclass(frozen=True)
class DataFrameInput:
    """A DataFrame that Spark itself reads in level 0, and the edges that its rows go to."""

    group: int
    operator_id: str
    name: str
    data_frame: Any
    edge_ids: tuple[int, ...]
    event_time: EventTimeColumn | None = None

    @property
    def streaming(self) -> bool:
        return bool(getattr(self.data_frame, "isStreaming", False))
