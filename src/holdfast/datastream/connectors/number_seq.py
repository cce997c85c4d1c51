"""Sources of whole numbers."""

from __future__ import annotations

from holdfast.connectors.sequence import NumberSequenceSource, SequenceSource

__all__ = ["NumberSequenceSource", "SequenceSource"]
