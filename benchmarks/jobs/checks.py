"""Which columns of what a job emits are summed up, in every engine; the sums are compared with the oracle's."""

from __future__ import annotations

#: By job: positions in (key, average), (key, count, sum, min, max), (key, value), (key, length, count), (key, value),
#: (key, count, sum, min, max, end), (auction, bids, end), (auction, price, end) and (person, auction).
CHECKED: dict[str, tuple[int, ...]] = {
    "average": (0, 1),
    "totals": (1, 2),
    "dedup": (0,),
    "sessions": (0, 1, 2),
    "enrichment": (0, 1),
    "minutes": (0, 1, 2, 3, 4, 5),
    "q5": (0, 1, 2),
    "q7": (0, 1, 2),
    "q8": (0, 1),
}
