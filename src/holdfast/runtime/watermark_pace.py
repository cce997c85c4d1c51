"""How often a watermark strategy makes a watermark, where the program asks for an interval."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class WatermarkPace:
    """``made`` is the highest event time that the watermark in force was made of; it was made at ``made_at``."""

    interval_ms: int
    made: int
    made_at: int

    @staticmethod
    def of(interval_ms: int | None, highest: int, now: int) -> WatermarkPace | None:
        """From ``now`` on, with what a restored job had promised. None where every row moves the watermark."""
        return None if interval_ms is None else WatermarkPace(interval_ms, highest, now)

    def tick(self, highest: int, now: int) -> bool:
        """Whether the interval is over, and a watermark was made of all that has come."""
        if now - self.made_at < self.interval_ms:
            return False
        self.made, self.made_at = highest, now
        return True

    def due(self, highest: int) -> int | None:
        """When the next one is to be made; None while it would say nothing new."""
        return self.made_at + self.interval_ms if highest > self.made else None
