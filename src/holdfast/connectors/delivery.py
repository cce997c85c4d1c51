"""What a sink promises."""

from __future__ import annotations

from enum import StrEnum


class DeliveryGuarantee(StrEnum):
    """How often a row may be in the output after failures."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"
    NONE = "none"
