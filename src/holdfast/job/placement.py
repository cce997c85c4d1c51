"""How the slots of a job are spread over executors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def spread_evenly(placement: Sequence[str], executors: int) -> bool:
    """No executor has more than its share of the slots."""
    if executors <= 1:
        return True
    share = -(-len(placement) // executors)
    return max(Counter(placement).values()) <= share
