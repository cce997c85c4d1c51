"""What a job costs that has little to do: processors that it keeps busy with no rows and with few, a checkpoint every
ten seconds, and how late rows are. Counted when the JVM has compiled what it needs.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

from benchmarks import processes, suite
from benchmarks.catalogue import Size
from benchmarks.data import FILES_OF_EPOCH, Shape, generate
from benchmarks.environments import CACHE
from benchmarks.jobs.holdfast.program import configuration, start
from benchmarks.jobs.protocol import Epoch, JobArguments
from benchmarks.latency import FILES_PER_SECOND, Feeder, lateness
from benchmarks.tables import Cell, Table

#: Seconds that are not counted, and seconds that are.
_SECONDS = {Size.FULL: (90, 90), Size.QUICK: (40, 40), Size.TINY: (5, 5)}
_RATES = (0, 1_500)
_KEYS = 10_000
_DEFAULTS = ("holdfast.epoch.idle-wait", "holdfast.epoch.max-idle-wait", "holdfast.epoch.target-latency")


def measure(size: Size) -> Sequence[Table]:
    rows = [_row(rate, *_SECONDS[size]) for rate in _RATES]
    note = "Pace as it is by default. All processes of the job: driver, its JVM, Python workers."
    columns = ["rows/s", "cores busy", "of them JVM", "epochs/s", "p50 s", "p99 s"]
    return [Table("idle", "a job with little to do", columns, rows, note)]


def _row(rate: int, warm_up: int, counted: int) -> list[Cell]:
    seconds = warm_up + counted
    shape = Shape(max(rate, 100) * (seconds + 5), _KEYS, max(rate, 100) * FILES_OF_EPOCH // FILES_PER_SECOND)
    files = sorted((generate(CACHE / "data", shape) / "events").iterdir())
    with tempfile.TemporaryDirectory(prefix="holdfast-benchmark-") as directory:
        scratch = Path(directory)
        live = scratch / "data" / "events"
        live.mkdir(parents=True)
        arguments = JobArguments("average", "lmdb", live.parent, scratch, scratch / "result", 1, 1, 1, live=True)
        config = configuration(arguments)
        for key in _DEFAULTS:
            config.remove_config(key)
        config.set_string("execution.checkpointing.interval", "10 s")
        client, _ = start(arguments, config)
        feeder = Feeder(files if rate else files[:20], live)
        try:
            time.sleep(warm_up)
            before, first = processes.cpu_seconds(os.getpid()), client.get_history().epochs[-1].epoch
            time.sleep(counted)
            after, last = processes.cpu_seconds(os.getpid()), client.get_history().epochs[-1].epoch
        finally:
            feeder.stop()
        time.sleep(2)
        history = list(client.get_history().epochs)
        client.cancel().result()
        SparkSession.builder.getOrCreate().stop()
    jvm = (after["jvm"] - before["jvm"]) / counted
    python = (after["python"] - before["python"]) / counted
    epochs = [Epoch(record.epoch, record.rows, record.started, record.finished) for record in history if record.rows]
    waits = lateness(epochs, feeder.appeared, shape.epoch_rows // FILES_OF_EPOCH)
    p50, p99 = np.percentile(waits[-counted * FILES_PER_SECOND :], [50, 99])
    late = (float(p50), float(p99)) if rate else (None, None)
    return [rate, jvm + python, jvm, (last - first) / counted, *late]


if __name__ == "__main__":
    raise SystemExit(suite.main(__doc__, measure))
