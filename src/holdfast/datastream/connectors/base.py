"""What sources and sinks have in common."""

from __future__ import annotations

from holdfast.connectors.delivery import DeliveryGuarantee
from holdfast.coverage.answers import answer_missing_names as _answer_missing_names
from holdfast.runtime.sink import TwoPhaseCommitSink as Sink
from holdfast.runtime.source import Source

__all__ = ["DeliveryGuarantee", "Sink", "Source"]

_answer_missing_names(__name__)
