"""An epoch without data, over much and little state, beside a bare Spark job of the same shape: a cached row for each
slot, Python, an exchange joined to the cached rows, Python, and what is left to the driver.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks import suite
from benchmarks.catalogue import Size
from benchmarks.data import value_of
from benchmarks.jobs import spark_streaming
from benchmarks.jobs.holdfast.program import configuration, start
from benchmarks.jobs.protocol import PARALLELISM, JobArguments
from benchmarks.tables import Cell, Table
from holdfast.runtime.envelope import EXCHANGE_DDL

_KEYS = {Size.FULL: 1_000_000, Size.QUICK: 200_000, Size.TINY: 2_000}
_EPOCHS = {Size.FULL: 100, Size.QUICK: 40, Size.TINY: 5}
#: Of those that are timed, at the start: not measured.
_WARM_UP = 0.2
_LITTLE = 1_000
_WAIT_SECONDS = 600
#: Without what reaches behind Spark's public API, or some of it.
_LESS_SPARK = {
    "lmdb-without-kept-plans": "every epoch planned anew",
    "lmdb-without-worker-daemon": "Spark's own daemon of Python workers",
    "lmdb-public": "Spark's public API alone",
}


def measure(size: Size) -> Sequence[Table]:
    keys, epochs = _KEYS[size], _EPOCHS[size]
    bare = [bare_job(epochs)]
    variants = ("lmdb-unchecked", "lmdb", "rocksdb-unchecked")
    cases = [(variant, state) for variant in variants for state in (_LITTLE, keys)]
    cases += [(variant, _LITTLE) for variant in _LESS_SPARK]
    timed = {(variant, state): empty_epochs(variant, state, epochs) for variant, state in cases}
    # Once more in a JVM that has compiled its code; the faster of both counts.
    bare.append(bare_job(epochs))
    best = min(median(times) for times in bare)
    rows: list[list[Cell]] = [["bare Spark job", None, best, *_range(min(bare, key=median)), 1.0]]
    for (variant, state), times in timed.items():
        backend, _, how = variant.partition("-")
        told = [f"Holdfast, {backend}", *([] if how == "unchecked" else ["a checkpoint every epoch"])]
        if variant in _LESS_SPARK:
            told.append(_LESS_SPARK[variant])
        rows.append([", ".join(told), state, median(times), *_range(times), median(times) / best])
    columns = ["", "keys of state", "ms", "p10", "p90", "x bare job"]
    return [Table("empty_epoch", "an epoch without data", columns, rows)]


def bare_job(epochs: int, partitions: int = PARALLELISM, exchanges: int = 1) -> list[float]:
    """Milliseconds of each run of the job."""
    spark = spark_streaming.session()
    slots = spark.range(partitions).selectExpr("int(id) AS slot")
    anchor = slots.repartition(partitions, "slot").cache()
    anchor.count()
    rows = anchor.mapInArrow(nothing(), EXCHANGE_DDL)
    for _ in range(exchanges):
        moved = rows.repartition(partitions, "slot")
        joined = moved.join(anchor.hint("shuffle_hash"), "slot").sortWithinPartitions("edge", "channel", "number")
        rows = joined.mapInArrow(nothing(), EXCHANGE_DDL)
    times = []
    for _ in range(epochs):
        started = time.perf_counter()
        rows.select("payload").toArrow()
        times.append((time.perf_counter() - started) * 1e3)
    spark.stop()
    return _measured(times)


def nothing() -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def drop(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        yield from ()

    return drop


def empty_epochs(variant: str, keys: int, epochs: int) -> list[float]:
    """Milliseconds of each epoch behind the one that filled the state."""
    with tempfile.TemporaryDirectory(prefix="holdfast-benchmark-") as directory:
        scratch = Path(directory)
        data = scratch / "data"
        (data / "events").mkdir(parents=True)
        every = np.arange(keys)
        pq.write_table(pa.table({"key": every, "value": value_of(every)}), data / "events" / "all.parquet")
        arguments = JobArguments("average", variant, data, scratch, scratch / "result", keys, keys, 1, live=True)
        client, _ = start(arguments, configuration(arguments))
        history, deadline = client.get_history(), time.monotonic() + _WAIT_SECONDS

        def empty() -> list[float]:
            records = list(history.epochs)
            filled = next((at for at, _ in enumerate(records) if sum(r.rows for r in records[: at + 1]) == keys), None)
            if filled is None:
                return []
            return [(record.finished - record.started) * 1e3 for record in records[filled + 1 :]]

        while len(empty()) < epochs:
            if not client.is_running() or time.monotonic() > deadline:
                client.get_job_execution_result().result(1)
                raise RuntimeError(f"{variant} over {keys} keys ran {len(empty())} empty epochs of {epochs}")
            time.sleep(0.1)
        times = empty()[:epochs]
        client.cancel().result()
        # Python workers are a setting of the application.
        SparkSession.builder.getOrCreate().stop()
    return _measured(times)


def _measured(times: list[float]) -> list[float]:
    return times[int(len(times) * _WARM_UP) :]


def _range(times: Sequence[float]) -> tuple[float, float]:
    low, high = np.percentile(times, [10, 90])
    return float(low), float(high)


if __name__ == "__main__":
    raise SystemExit(suite.main(__doc__, measure))
