"""Ratios that Holdfast is to reach: its rows per second over those of the other, both of the same run."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.catalogue import FLOOR, HOLDFAST


@dataclass(frozen=True)
class Target:
    """``theirs`` are the forms of the other, of which the best counts."""

    title: str
    job: str
    ours: str
    against: str
    theirs: tuple[str, ...]
    wanted: float


_STATEFUL = ("tws-row", "tws-pandas", "tws-row-combined", "tws-pandas-combined")
_AVERAGE = "average, function per row, LMDB, a checkpoint every epoch"
_TOTALS = "count, sum, min and max by known aggregates, LMDB, a checkpoint every epoch"
_STREAM = "the same of a stream that Spark reads, and combines in the JVM"
_BATCH = "the same by a KeyedBatchFunction over all rows"
_JVM = ("jvm-rocksdb", "jvm-default")

TARGETS = (
    Target(_AVERAGE, "average", HOLDFAST, "transformWithState, the same program", _STATEFUL[:2], 100),
    Target(_AVERAGE, "average", HOLDFAST, "transformWithState, combined by hand", _STATEFUL[2:], 100),
    Target(_AVERAGE, "average", HOLDFAST, "PyFlink, process mode", ("pyflink-heap", "pyflink-rocksdb"), 100),
    Target(_AVERAGE, "average", HOLDFAST, "Bytewax, recovery on", ("bytewax-workers", "bytewax-processes"), 2),
    Target(_AVERAGE, "average", HOLDFAST, "Spark's aggregation in the JVM", _JVM, 1),
    Target(_AVERAGE, "average", HOLDFAST, "pipeline without state", (FLOOR,), 0.75),
    Target(_TOTALS, "totals", f"{HOLDFAST}-aggregate", "Spark's aggregation in the JVM", _JVM, 1.5),
    Target(_TOTALS, "totals", f"{HOLDFAST}-aggregate", "pipeline without state", (FLOOR,), 1.2),
    Target(_STREAM, "totals", f"{HOLDFAST}-stream", "Spark's aggregation in the JVM", _JVM, 1.5),
    Target(_STREAM, "totals", f"{HOLDFAST}-stream", "pipeline without state", (FLOOR,), 1.2),
    Target(_BATCH, "totals", f"{HOLDFAST}-batch", "pipeline without state", (FLOOR,), 0.85),
)
