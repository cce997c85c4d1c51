"""What a job must have published, and what it did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Verdict:
    """``wrong`` are rows that no correct run gives; ``repeated`` are right and there too often."""

    rows_in: int
    expected: int
    rows_out: int
    lost: int
    repeated: int
    wrong: int

    @property
    def exactly_once(self) -> bool:
        return self.expected > 0 and self.lost == self.repeated == self.wrong == 0


def compare(expected: Iterable[Hashable], seen: Iterable[Hashable], rows_in: int = 0) -> Verdict:
    """Compare rows in any order."""
    wanted, found = Counter(expected), Counter(seen)
    surplus = found - wanted
    return Verdict(
        rows_in=rows_in,
        expected=wanted.total(),
        rows_out=found.total(),
        lost=(wanted - found).total(),
        repeated=sum(count for row, count in surplus.items() if row in wanted),
        wrong=sum(count for row, count in surplus.items() if row not in wanted),
    )


def _unchanged(rows: Sequence[Any]) -> Iterable[Any]:
    return rows


@dataclass(frozen=True)
class Oracle:
    """How to read what went into a job and what came out of it. All of it is called in the harness's process.

    ``rows_in`` and ``rows_out`` give all rows there are, hashable, in any order; ``rows_out`` those that a reader of
    the output is meant to see. ``expected`` makes of the rows in the rows that must come out. ``check``, called at the
    end, may look at anything else and raise AssertionError. ``progress`` gives something that changes whenever the job
    has published more; it is called several times a second, so give a cheap one where counting ``rows_out`` is not.
    """

    rows_in: Callable[[], Iterable[Any]]
    rows_out: Callable[[], Iterable[Any]]
    expected: Callable[[Sequence[Any]], Iterable[Any]] = _unchanged
    check: Callable[[], None] | None = None
    progress: Callable[[], object] | None = None

    def judge(self) -> Verdict:
        rows = list(self.rows_in())
        return compare(self.expected(rows), self.rows_out(), len(rows))

    def published(self) -> object:
        """Changes when the job has published more."""
        return self.progress() if self.progress is not None else sum(1 for _ in self.rows_out())
