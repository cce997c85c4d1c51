"""Checks what ``counting.py`` has published: for each digit the counts 1, 2, 3, ..., each exactly once.

    python examples/check_counts.py DIRECTORY
"""

from __future__ import annotations

import sys
from collections import defaultdict

import pyarrow.parquet as pq


def main(directory: str) -> int:
    counts: dict[int, list[int]] = defaultdict(list)
    for row in pq.read_table(directory).to_pylist():
        counts[row["digit"]].append(row["count"])
    wrong = [digit for digit, seen in sorted(counts.items()) if sorted(seen) != list(range(1, len(seen) + 1))]
    total = sum(map(len, counts.values()))
    if wrong or not total:
        print(f"WRONG: the counts of digits {wrong} have gaps or repetitions." if wrong else "There are no results.")
        return 1
    print(f"{total} results of {len(counts)} digits: every count exactly once, without a gap.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
