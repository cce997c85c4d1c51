"""Values with the time of their last access: in caches as pairs, in the store behind 8 bytes.

Every stored entry of a state with a time to live begins with the latest last access of what is in it, so that whether
all of it has expired is seen without decoding it, whatever the kind of the state. In the chunks of a list each element
has its own time as well. Stored times order as bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from holdfast.state.cells import Cells
from holdfast.state.layout import read_time, time_bytes
from holdfast.state.serializers import Serializer
from holdfast.state.ttl_config import StateTtlConfig
from holdfast.state.ttl_time import TtlTime

#: The time in front of stored bytes.
STAMP = 8

#: A value's cell, which is None in a map entry without a value, and the time of its last access.
TimedCell = tuple[Any, int]


def deadline(config: StateTtlConfig, now: int) -> bytes:
    """What was last accessed at this time or before has expired; to be compared with the beginning of an entry."""
    return time_bytes(now - config.milliseconds)


def restamped(
    rewrite: Callable[[bytes], bytes | None], had: bool, has: bool, now: int
) -> Callable[[bytes], bytes | None]:
    """``rewrite`` for bytes that stand behind a time before, after, or both. A time that is missing becomes ``now``."""
    stamp = time_bytes(now)
    if not had and not has:
        return rewrite

    def restamp(data: bytes) -> bytes | None:
        found = rewrite(data[STAMP:] if had else data)
        if found is None or not has:
            return found
        return (data[:STAMP] if had else stamp) + found

    return restamp


class ExpiringCells(Cells):
    """Makes timed cells of values, at the present time, and timed cells of stored bytes."""

    def __init__(self, serializer: Serializer, config: StateTtlConfig, time: TtlTime) -> None:
        super().__init__(serializer)
        self._values = Cells(serializer)
        self.plain = None
        self.revive = self._revive_timed
        self.config = config
        self.time = time
        self.ttl = config.milliseconds
        self.renews = config.update_type is StateTtlConfig.UpdateType.OnReadAndWrite
        visibility = config.state_visibility
        self.returns_expired = visibility is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp

    def admit(self, value: Any) -> TimedCell:
        values = self._values
        if value is not None and value.__class__ is not values.plain:
            value = values.admit(value)
        return value, self.time.now

    def open(self, cell: TimedCell) -> Any:
        return self._values.open(cell[0])

    def pack(self, cells: Sequence[TimedCell]) -> list[bytes]:
        # Few batches wrote them all, so there are few times.
        stamps = {touched: time_bytes(touched) for touched in {touched for _, touched in cells}}
        packed = iter(self._values.pack([value for value, _ in cells if value is not None]))
        return [stamps[touched] + (b"" if value is None else next(packed)) for value, touched in cells]

    def pack_chunk(self, cells: Sequence[TimedCell]) -> bytes:
        return time_bytes(max(touched for _, touched in cells)) + super().pack_chunk(cells)

    def revive_chunk(self, data: bytes) -> list[TimedCell]:
        return super().revive_chunk(data[STAMP:])

    def _revive_timed(self, data: bytes) -> TimedCell:
        value = data[STAMP:]
        return self._values.revive(value) if value else None, read_time(data[:STAMP])
