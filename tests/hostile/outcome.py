"""What a hostile case came to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec
from rich.table import Table

EXACT, REFUSED = "exact", "refused by name"


class Outcome(msgspec.Struct, frozen=True):
    """What came of a damaged file, a full disk, a flood or a savepoint. ``verdict``: EXACT, REFUSED, or what is wrong;
    then ``told`` has what the job told.
    """

    trial: str
    place: str
    backend: str
    how: str
    verdict: str
    told: str = ""

    @property
    def good(self) -> bool:
        return self.verdict in (EXACT, REFUSED)


def is_a_case(record_property: Callable[[str, object], None], trial: str, place: str, verdict: str) -> None:
    """Told by a test that is a hostile case as well: how it ends when all that it asserts holds. What a test only
    compares with, such as something that is allowed, is none.
    """
    for name, value in (("trial", trial), ("place", place), ("verdict", verdict)):
        record_property(name, value)


def table_of(outcomes: Sequence[Outcome]) -> Table:
    table = Table("trial", "place", "backend")
    for name in ("cases", EXACT, REFUSED, "wrong"):
        table.add_column(name, justify="right")
    groups: dict[tuple[str, str, str], list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.trial, outcome.place, outcome.backend), []).append(outcome)
    for names, group in [*sorted(groups.items()), (("all", "", ""), list(outcomes))]:
        verdicts = Counter(outcome.verdict for outcome in group)
        wrong = sum(not outcome.good for outcome in group)
        table.add_row(*names, *(f"{count:,}" for count in (len(group), verdicts[EXACT], verdicts[REFUSED], wrong)))
    return table
