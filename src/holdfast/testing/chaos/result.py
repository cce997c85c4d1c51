"""What a round of faults came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.errors import MissingExtraError
from holdfast.testing.chaos.oracle import Verdict

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class ChaosResult:
    """One job from its start to its end. ``error`` says why it did not come to its end, or what else was wrong."""

    name: str
    seed: int
    seconds: float
    faults: Mapping[str, int]
    restarts: int
    verdict: Verdict
    error: str | None = None

    @property
    def exactly_once(self) -> bool:
        """The job came to its end, nothing was lost, nothing repeated, nothing wrong."""
        return self.error is None and self.verdict.exactly_once

    def __str__(self) -> str:
        return ", ".join(f"{head} {cell}" for head, cell in zip(_COLUMNS, _cells(self), strict=True))


_COLUMNS = (
    *("job", "seed", "seconds", "faults", "restarts"),
    *("rows in", "rows out", "lost", "repeated", "wrong", "verdict"),
)
_TEXTS = ("job", "faults", "verdict")


def _cells(result: ChaosResult) -> list[str]:
    verdict = result.verdict
    faults = " ".join(f"{name}:{count}" for name, count in sorted(result.faults.items())) or "none"
    counts = (verdict.rows_in, verdict.rows_out, verdict.lost, verdict.repeated, verdict.wrong)
    end = "exactly once" if result.exactly_once else "FAILED" if result.error else "WRONG"
    head = [result.name, str(result.seed), f"{result.seconds:.0f}", faults, str(result.restarts)]
    return [*head, *(f"{count:,}" for count in counts), end]


def table_of(results: Sequence[ChaosResult]) -> Table:
    """For ``rich.print``: one line for each result."""
    try:
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
    except ImportError as cause:
        raise MissingExtraError("rich", "testing", "The table of chaos results") from cause
    table = Table(box=SIMPLE_HEAD, show_edge=False)
    for name in _COLUMNS:
        table.add_column(name, justify="left" if name in _TEXTS else "right", overflow="fold")
    for result in results:
        table.add_row(*_cells(result), style="" if result.exactly_once else "bold red")
    return table
