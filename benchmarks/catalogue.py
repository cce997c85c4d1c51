"""What is measured, in the order of the table."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.data import Shape

#: Ratios are given against these two.
FLOOR = "floor"
TRANSFORM_WITH_STATE = "tws-row"

#: Jobs that take a minute for an epoch run one to warm up and one to be measured.
_SLOW_EPOCHS = 2
_SMALL_EPOCH = 10


@dataclass(frozen=True)
class Benchmark:
    """One row of the table: a job module, the variant of it to run, and what it needs."""

    name: str
    title: str
    module: str
    variant: str
    emits_averages: bool = False
    slow: bool = False
    small_epochs: bool = False
    needs: tuple[str, ...] = ()

    def shape(self, whole: Shape) -> Shape:
        """The events of this benchmark: all of them, or the first epochs, or epochs of a tenth of the rows."""
        if self.small_epochs:
            rows = max(1, whole.epoch_rows // _SMALL_EPOCH)
            whole = Shape(rows * whole.epochs, whole.keys, rows)
        return whole.shortened(_SLOW_EPOCHS) if self.slow else whole

    def warm_up(self, shape: Shape) -> int:
        """Epochs at the start that are not measured."""
        return 1 if self.slow or shape.epochs < 6 else 2


def _transform_with_state(name: str, title: str, variant: str, small_epochs: bool = False) -> Benchmark:
    return Benchmark(
        name,
        title,
        "transform_with_state",
        variant,
        emits_averages=True,
        slow=True,
        small_epochs=small_epochs,
        needs=("pandas", "google.protobuf"),
    )


def _holdfast(name: str, title: str, variant: str, small_epochs: bool = False) -> Benchmark:
    needs = ("rocksdict",) if variant.startswith("rocksdb") else ()
    return Benchmark(
        name, title, "holdfast_average", variant, emits_averages=True, small_epochs=small_epochs, needs=needs
    )


CATALOGUE = (
    Benchmark(FLOOR, "Spark, no state: shuffle, Python and back (stream)", "floor", "stream"),
    Benchmark("floor-batch", "the same as one batch job per epoch", "floor", "batch"),
    Benchmark("jvm-rocksdb", "Spark groupBy().agg() in the JVM, RocksDB", "jvm_aggregation", "rocksdb"),
    Benchmark("jvm-default", "Spark groupBy().agg() in the JVM, default store", "jvm_aggregation", "default"),
    _transform_with_state(TRANSFORM_WITH_STATE, "PySpark transformWithState", "row"),
    _transform_with_state("tws-pandas", "PySpark transformWithStateInPandas", "pandas"),
    _holdfast("holdfast-heap", "Holdfast, heap, checkpoint every epoch", "heap"),
    _holdfast("holdfast-lmdb", "Holdfast, LMDB, checkpoint every epoch", "lmdb"),
    _holdfast("holdfast-rocksdb", "Holdfast, RocksDB, checkpoint every epoch", "rocksdb"),
    _holdfast("holdfast-heap-unchecked", "Holdfast, heap, no checkpoints", "heap-unchecked"),
    _holdfast("holdfast-lmdb-unchecked", "Holdfast, LMDB, no checkpoints", "lmdb-unchecked"),
    _holdfast("holdfast-rocksdb-unchecked", "Holdfast, RocksDB, no checkpoints", "rocksdb-unchecked"),
    _transform_with_state("tws-row-small", "PySpark transformWithState, small epochs", "row", small_epochs=True),
    _holdfast("holdfast-lmdb-small", "Holdfast, LMDB, checkpoints, small epochs", "lmdb", small_epochs=True),
)


def select(names: str | None) -> list[Benchmark]:
    """The benchmarks of a comma-separated list; a name that ends in ``*`` stands for all that begin so."""
    if not names:
        return list(CATALOGUE)
    wanted: list[Benchmark] = []
    for pattern in names.split(","):
        found = [b for b in CATALOGUE if b.name == pattern or (pattern[-1:] == "*" and b.name.startswith(pattern[:-1]))]
        if not found:
            known = ", ".join(benchmark.name for benchmark in CATALOGUE)
            raise ValueError(f"there is no benchmark {pattern!r}; there are: {known}")
        wanted.extend(benchmark for benchmark in found if benchmark not in wanted)
    return sorted(wanted, key=CATALOGUE.index)
