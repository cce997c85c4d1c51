"""A table of figures: as text for people, as Markdown for pages, as JSON for both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

Cell = str | float | int | None


@dataclass(frozen=True)
class Table:
    """``name`` is the suite that measured it, or the job. The note says how to read it."""

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""

    def text(self) -> str:
        cells = [list(self.columns), *([shown(cell) for cell in row] for row in self.rows)]
        widths = [max(len(line[column]) for line in cells) for column in range(len(self.columns))]
        lines = [_line(line, widths) for line in cells]
        return "\n".join([self.title, *lines, *([self.note] if self.note else [])])

    def markdown(self) -> str:
        head = ["| " + " | ".join(self.columns) + " |", "|" + "---|" * len(self.columns)]
        body = ["| " + " | ".join(shown(cell).replace("|", "\\|") for cell in row) + " |" for row in self.rows]
        return "\n".join([*head, *body, *(["", self.note] if self.note else [])])

    def content(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, content: dict[str, Any]) -> Table:
        return cls(**content)


def shown(cell: Cell) -> str:
    """A number with as many digits as it means something."""
    if cell is None:
        return "-"
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int) or abs(cell) >= 1000:
        return f"{cell:,.0f}"
    if abs(cell) >= 100:
        return f"{cell:.0f}"
    return f"{cell:.1f}" if abs(cell) >= 10 else f"{cell:.2f}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = cells
    padded = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))]
    return "  ".join(padded).rstrip()
