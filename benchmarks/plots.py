"""Plots of results, as PNG files: bars of throughput for each job, and curves of what grows with state."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

# No display is needed.
mpl.use("Agg")

import matplotlib.pyplot as plt

from benchmarks.tables import Table

#: The fastest is so many times the slowest where bars need a logarithmic scale.
_FAR = 20
_OURS, _FLOOR, _THEIRS = "#1b7f5c", "#555555", "#c0b090"


def throughput(figures: Sequence[dict[str, Any]], job: str, path: Path) -> bool:
    """Rows per second of everyone who ran a job, best first; false when nobody did."""
    found = [figure for figure in figures if figure["job"] == job and figure["rows_per_second"]]
    if not found:
        return False
    found.sort(key=lambda figure: figure["rows_per_second"])
    rates = [figure["rows_per_second"] for figure in found]
    spread = [
        [figure["rows_per_second"] - figure["least"] for figure in found],
        [figure["most"] - figure["rows_per_second"] for figure in found],
    ]
    drawing, axes = plt.subplots(figsize=(9, 0.9 + 0.32 * len(found)))
    axes.barh(range(len(found)), rates, xerr=spread, color=[_colour(figure["contestant"]) for figure in found])
    axes.set_yticks(range(len(found)), [figure["title"] for figure in found], fontsize=8)
    far_apart = max(rates) > _FAR * min(rates)
    if far_apart:
        axes.set_xscale("log")
        axes.set_xlim(min(rates) / 3, max(rates) * 4)
    else:
        axes.set_xlim(0, max(rates) * 1.25)
        axes.xaxis.set_major_formatter("{x:,.0f}")
    scale = "log scale; " if far_apart else ""
    axes.set_xlabel(f"rows per second ({scale}thin lines from the slowest to the fastest run)", fontsize=8)
    for at, figure in enumerate(found):
        axes.text(figure["most"], at, f" {figure['rows_per_second']:,.0f}", va="center", fontsize=7)
    _save(drawing, axes, path)
    return True


def curves(table: Table, x: str, y: str, scale: str, path: Path) -> None:
    """A line for each first column of a table over a logarithmic axis; a linear one upwards begins at 0."""
    across, up = table.columns.index(x), table.columns.index(y)
    drawing, axes = plt.subplots(figsize=(6.5, 3.6))
    for name in dict.fromkeys(row[0] for row in table.rows):
        mine = [row for row in table.rows if row[0] == name]
        xs, ys = ([float(row[column] or 0) for row in mine] for column in (across, up))
        axes.plot(xs, ys, marker="o", label=str(name))
    axes.set_xscale("log")
    axes.set_yscale(scale)
    if scale == "linear":
        axes.set_ylim(bottom=0)
    axes.set_xlabel(x, fontsize=8)
    axes.set_ylabel(y, fontsize=8)
    axes.legend(fontsize=8)
    axes.grid(True, which="major", alpha=0.3)
    _save(drawing, axes, path)


def _colour(contestant: str) -> str:
    if contestant.startswith("holdfast"):
        return _OURS
    return _FLOOR if contestant.startswith("floor") else _THEIRS


def _save(drawing: Any, axes: Any, path: Path) -> None:
    axes.tick_params(labelsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    drawing.tight_layout()
    drawing.savefig(path, dpi=130, metadata={"Software": None})
    plt.close(drawing)
