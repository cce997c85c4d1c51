"""What an epoch costs as slots grow: three levels, few rows and a checkpoint in each, beside a bare Spark job of its
shape. All slots are on this machine and share its cores, so what counts is the time of a task.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession

from benchmarks import processes, suite
from benchmarks.catalogue import Size
from benchmarks.empty_epoch import bare_job
from benchmarks.jobs.protocol import SPARK_SETTINGS
from benchmarks.tables import Cell, Table
from holdfast.common import Configuration, Types, WatermarkStrategy
from holdfast.common.job_client import JobClient
from holdfast.connectors.discard import DiscardSink
from holdfast.connectors.sequence import NumberSequenceSource
from holdfast.datastream import StreamExecutionEnvironment

_SLOTS = {Size.FULL: (2, 16, 64, 200, 512), Size.QUICK: (2, 16, 64), Size.TINY: (2,)}
_LEVELS = 3
#: Epochs that are not counted, and epochs that are; of many slots fewer.
_WARM_UP, _COUNTED = 12, 1_500
_ROWS = 2_000


def measure(size: Size) -> Sequence[Table]:
    rows: list[list[Cell]] = []
    for slots in _SLOTS[size]:
        counted = max(6, min(40, _COUNTED // slots))
        bare = median(bare_job(_WARM_UP + counted, slots, _LEVELS - 1))
        millis, cores = epochs_of(slots, counted)
        tasks = slots * _LEVELS
        rows.append([slots, tasks, bare, millis, millis / bare, millis / tasks, millis * cores / tasks])
    columns = ["slots", "tasks", "bare Spark job ms", "epoch ms", "x bare job", "ms a task", "CPU ms a task"]
    note = f"Three levels, {_ROWS:,} rows and a checkpoint in each epoch; medians."
    return [Table("slots", "an epoch as slots grow", columns, rows, note)]


def epochs_of(slots: int, counted: int) -> tuple[float, float]:
    """Milliseconds of an epoch, and the cores that were busy meanwhile."""
    with tempfile.TemporaryDirectory(prefix="holdfast-benchmark-") as directory:
        config = Configuration.from_dict(
            {
                **SPARK_SETTINGS,
                "restart-strategy.type": "none",
                "holdfast.state.local-dir": str(Path(directory) / "state"),
                "holdfast.epoch.max-rows": str(max(_ROWS, slots)),
                "execution.checkpointing.interval": "10 ms",
                "execution.checkpointing.dir": str(Path(directory) / "checkpoints"),
            }
        )
        env = StreamExecutionEnvironment.get_execution_environment(config).set_parallelism(slots)
        env.set_max_parallelism(max(128, slots))
        total = max(_ROWS, slots) * 1_000_000
        numbers = env.from_source(NumberSequenceSource(0, total), WatermarkStrategy.no_watermarks(), "numbers")
        counts = numbers.key_by(lambda n: n % 1_000, Types.LONG()).map_with_state(_count, Types.LONG(), Types.LONG())
        again = counts.key_by(lambda n: n % 100, Types.LONG()).map_with_state(_count, Types.LONG(), Types.LONG())
        again.sink_to(DiscardSink())
        client = env.execute_async("slots")
        history = client.get_history()
        _until(client, lambda: len(history.epochs) >= _WARM_UP)
        before, began = processes.cpu_seconds(os.getpid()), time.perf_counter()
        _until(client, lambda: len(history.epochs) >= _WARM_UP + counted)
        after, ended = processes.cpu_seconds(os.getpid()), time.perf_counter()
        times = [(record.finished - record.started) * 1e3 for record in list(history.epochs)[_WARM_UP:]]
        client.cancel().result()
        SparkSession.builder.getOrCreate().stop()
    return median(times), (sum(after.values()) - sum(before.values())) / (ended - began)


def _count(value: int, seen: int | None) -> tuple[int, int]:
    return value, (seen or 0) + 1


def _until(client: JobClient, holds: Callable[[], bool]) -> None:
    while not holds():
        if not client.is_running():
            client.get_job_execution_result().result(1)
        time.sleep(0.05)


if __name__ == "__main__":
    raise SystemExit(suite.main(__doc__, measure))
