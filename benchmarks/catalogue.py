"""What is measured: jobs, and who runs them.

A new variant is one line in ``CONTESTANTS`` with the jobs that it can run; a new job is one line in ``JOBS``, an oracle
and a program for each engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from benchmarks.data import Shape
from benchmarks.environments import PROJECT_ENVIRONMENT

FLOOR = "floor"
HOLDFAST = "holdfast-lmdb"

#: Epochs of a run on a prefix of the rows; the first is not measured.
_PREFIX_EPOCHS = 4


class Size(StrEnum):
    """How much is measured: everything, enough for a look, or enough to see that it runs."""

    FULL = "full"
    QUICK = "quick"
    TINY = "tiny"


@dataclass(frozen=True)
class Job:
    """A job over one kind of data. ``program`` names it within an engine."""

    name: str
    title: str
    program: str
    oracle: str
    whole: Shape

    def shape(self, size: Size) -> Shape:
        if size is Size.FULL:
            return self.whole
        if size is Size.QUICK:
            each, keys = self.whole.epoch_rows // 2, min(self.whole.keys, 1_000_000)
        else:
            each, keys = 2_000, min(self.whole.keys, 500)
        return replace(self.whole, rows=4 * each, epoch_rows=each, keys=keys)


def _events(rows: int, keys: int, distribution: str = "uniform") -> Shape:
    return Shape(rows, keys, 500_000, distribution=distribution)


def _average(name: str, rows: int, keys: int, distribution: str) -> Job:
    how = "by Zipf's law" if distribution == "zipf" else "uniform"
    title = f"average of every three values, {keys:,} keys, {how}"
    return Job(name, title, "average", "averages", _events(rows, keys, distribution))


_NEXMARK = Shape(2_000_000, 20_000, 200_000, "bids")
#: Long enough for the JVM to have compiled what it ever will.
_LONG = Shape(60_000_000, 100_000, 500_000, warm_up=40)

JOBS = (
    _average("average", 5_000_000, 100_000, "uniform"),
    _average("average-zipf", 5_000_000, 100_000, "zipf"),
    _average("average-many", 10_000_000, 10_000_000, "uniform"),
    _average("average-many-zipf", 10_000_000, 10_000_000, "zipf"),
    Job("totals", "count, sum, min and max per key", "totals", "running_totals", _events(5_000_000, 100_000)),
    Job("average-long", "average of every three values, over minutes", "average", "averages", _LONG),
    Job("totals-long", "count, sum, min and max per key, over minutes", "totals", "running_totals", _LONG),
    Job("dedup", "first of each key, with a time to live", "dedup", "distinct", _events(5_000_000, 2_500_000)),
    Job("sessions", "sessions of users", "sessions", "sessions", Shape(2_000_000, 20_000, 200_000, "clicks")),
    Job(
        "minutes",
        "count, sum, min and max per key in windows of a minute",
        "minutes",
        "minutes",
        Shape(5_000_000, 1_000, 500_000, "readings"),
    ),
    Job("enrichment", "enrichment from broadcast state", "enrichment", "enriched", _events(5_000_000, 100_000)),
    Job("q5", "Nexmark query 5: hot items", "q5", "hot_items", _NEXMARK),
    Job("q7", "Nexmark query 7: highest bid", "q7", "highest_bids", _NEXMARK),
    Job("q8", "Nexmark query 8: new users", "q8", "new_users", replace(_NEXMARK, kind="arrivals")),
)

_AVERAGES = ("average", "average-zipf", "average-many", "average-many-zipf", "average-long")
_TOTALS = ("totals", "totals-long")
_KEYED = ("average", "average-zipf", "totals", "dedup")
_ALL = tuple(job.name for job in JOBS)
_ONE_TABLE = tuple(name for name in _ALL if name != "q8")


@dataclass(frozen=True)
class Contestant:
    """An engine in one form. ``module`` is below ``benchmarks.jobs`` and runs in ``environment``.

    ``minute_rows``: about what it does in a minute; it reads no more than that. ``whole_epochs``: it then reads whole
    epochs, at least two, because its rate depends on their size. ``oracles``: of jobs for which it emits something
    else than Holdfast does.
    """

    name: str
    title: str
    module: str
    variant: str
    jobs: tuple[str, ...]
    environment: str = PROJECT_ENVIRONMENT
    form: str = "parquet"
    minute_rows: int | None = None
    whole_epochs: bool = False
    oracles: tuple[tuple[str, str], ...] = ()


def _holdfast(variant: str, title: str, jobs: tuple[str, ...]) -> Contestant:
    # By columns the totals of a key come once in an epoch, whose rows are whichever the subtasks have read.
    oracles = tuple((name, "final_totals") for name in _TOTALS) if ":" in variant else ()
    name, about = f"holdfast-{variant.replace(':', '-')}", f"Holdfast, {title}"
    return Contestant(name, about, "holdfast.program", variant, jobs, oracles=oracles)


def _jvm(variant: str, title: str, jobs: tuple[str, ...]) -> Contestant:
    # An aggregation emits what a micro-batch changed.
    oracles = tuple((name, "epoch_totals") for name in (*_AVERAGES, *_TOTALS))
    return Contestant(
        f"jvm-{variant}", f"Spark's own operators in the JVM, {title}", "spark_jvm", variant, jobs, oracles=oracles
    )


def _transform_with_state(
    variant: str, title: str, minute_rows: int, jobs: tuple[str, ...] = ("average",)
) -> Contestant:
    combined = variant.endswith("-combined")
    return Contestant(
        f"tws-{variant}",
        f"PySpark transformWithState, {title}",
        "transform_with_state",
        variant,
        jobs,
        minute_rows=minute_rows,
        whole_epochs=combined,
        oracles=(("totals", "epoch_totals"),) if combined else (),
    )


def _flink(variant: str, title: str, jobs: tuple[str, ...]) -> Contestant:
    name, about = f"pyflink-{variant}", f"PyFlink, process mode, {title}, checkpoints every second"
    return Contestant(name, about, "pyflink_job", variant, jobs, "flink", "csv", minute_rows=100_000)


def _bytewax(variant: str, title: str, jobs: tuple[str, ...]) -> Contestant:
    name, about = f"bytewax-{variant}", f"Bytewax, {title}, recovery on"
    return Contestant(name, about, "bytewax_flow", variant, jobs, "bytewax", minute_rows=4_000_000)


CONTESTANTS = (
    Contestant(
        FLOOR,
        "Spark, no state: shuffle, Python and back (stream)",
        "floor",
        "stream",
        _ONE_TABLE,
        oracles=tuple((name, "untouched") for name in _ONE_TABLE),
    ),
    Contestant(
        "floor-batch",
        "Spark, no state: the same, one batch job per epoch",
        "floor",
        "batch",
        ("average",),
        oracles=(("average", "untouched"),),
    ),
    _jvm("rocksdb", "RocksDB", _ALL),
    _jvm("default", "default store", ("average", "average-long", *_TOTALS)),
    _holdfast("lmdb", "LMDB, checkpoint every epoch", _ALL),
    _holdfast("rocksdb", "RocksDB, checkpoint every epoch", (*_AVERAGES, *_TOTALS, "dedup", "sessions", "q5")),
    _holdfast("heap", "heap, checkpoint every epoch", ("average", "average-zipf", "totals")),
    _holdfast("lmdb-unchecked", "LMDB, no checkpoints", ("average",)),
    _holdfast("rocksdb-unchecked", "RocksDB, no checkpoints", ("average",)),
    _holdfast("heap-unchecked", "heap, no checkpoints", ("average",)),
    _holdfast("lmdb:aggregate", "LMDB, checkpoint every epoch, known aggregates", (*_TOTALS, "minutes", "q5")),
    _holdfast(
        "lmdb:stream", "LMDB, checkpoint every epoch, known aggregates of Spark's stream", (*_TOTALS, "minutes")
    ),
    _holdfast("lmdb:batch", "LMDB, checkpoint every epoch, KeyedBatchFunction", _TOTALS),
    _holdfast("lmdb-public", "LMDB, by Spark's public API alone", ("average", "average-long")),
    _holdfast("lmdb-without-kept-plans", "LMDB, every epoch planned anew", ("average",)),
    _holdfast("lmdb-without-worker-daemon", "LMDB, Spark's own daemon of Python workers", ("average",)),
    _holdfast("lmdb-public:stream", "LMDB, known aggregates of Spark's stream, by its public API alone", ("totals",)),
    _holdfast("lmdb-without-half-aggregations:stream", "LMDB, stream's rows combined in Python", _TOTALS),
    _holdfast("lmdb-without-file-manager:stream", "LMDB, stream with Spark's file manager", ("totals",)),
    _transform_with_state("row", "rows, state read and updated for every row", 120_000, (*_KEYED, "average-many")),
    _transform_with_state("pandas", "pandas, state read and updated for every row", 60_000),
    _transform_with_state("row-combined", "rows, combined by hand: once per key and batch", 1_000_000, _KEYED),
    _transform_with_state("pandas-combined", "pandas, combined by hand: once per key and batch", 400_000),
    Contestant(
        "apply-in-pandas",
        "PySpark applyInPandasWithState",
        "apply_in_pandas",
        "",
        ("average", "totals", "dedup"),
        minute_rows=80_000,
    ),
    _flink("heap", "heap", (*_KEYED, "sessions", "q5", "q7")),
    _flink("rocksdb", "RocksDB", ("average", "average-many")),
    _bytewax("workers", "two workers in a process", ("average",)),
    _bytewax("processes", "two processes", (*_KEYED, "average-many")),
)


@dataclass(frozen=True)
class Entry:
    """One line of a table: a job that a contestant runs."""

    job: Job
    contestant: Contestant

    @property
    def name(self) -> str:
        return f"{self.job.name}/{self.contestant.name}"

    @property
    def oracle(self) -> str:
        return dict(self.contestant.oracles).get(self.job.name, self.job.oracle)

    def shape(self, size: Size) -> Shape:
        """The rows of this entry: all of them, or the first, in fewer or smaller epochs."""
        whole, most = self.job.shape(size), self.contestant.minute_rows
        if size is Size.QUICK and most is not None:
            most //= 4
        if size is Size.TINY or most is None or most >= whole.rows:
            return whole
        if self.contestant.whole_epochs:
            epochs = max(2, most // whole.epoch_rows)
            return whole.prefix(epochs * whole.epoch_rows, epochs)
        return whole.prefix(most, _PREFIX_EPOCHS)


def select(jobs: str | None, contestants: str | None) -> list[Entry]:
    """The entries of comma-separated lists of names; a name that ends in ``*`` stands for all that begin so."""
    wanted_jobs = _matching(jobs, [job.name for job in JOBS])
    wanted = _matching(contestants, [contestant.name for contestant in CONTESTANTS])
    return [
        Entry(job, contestant)
        for job in JOBS
        for contestant in CONTESTANTS
        if job.name in wanted_jobs and contestant.name in wanted and job.name in contestant.jobs
    ]


def _matching(patterns: str | None, names: Sequence[str]) -> set[str]:
    if not patterns:
        return set(names)
    wanted: set[str] = set()
    for pattern in patterns.split(","):
        found = {name for name in names if name == pattern or (pattern[-1:] == "*" and name.startswith(pattern[:-1]))}
        if not found:
            raise ValueError(f"nothing is named {pattern!r}; there are: {', '.join(names)}")
        wanted |= found
    return wanted
