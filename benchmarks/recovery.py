"""How long a job is away: until the first rows are processed after a restart from a checkpoint with as many subtasks
and with more, and after its workers were killed. Beside it the same start without state, and a restart of Spark's own
aggregation, which cannot change its number of partitions.
"""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import processes, spark_restart, suite
from benchmarks.catalogue import Size
from benchmarks.data import value_of
from benchmarks.jobs.holdfast.program import configuration, start
from benchmarks.jobs.protocol import PARALLELISM, JobArguments
from benchmarks.tables import Cell, Table
from holdfast.common.job_client import JobClient
from holdfast.job.job import EpochRecord

_KEYS = {Size.FULL: 1_000_000, Size.QUICK: 200_000, Size.TINY: 2_000}
_REPEATS = 3
_WAIT_SECONDS = 300
_NOTICED_SECONDS = 3
_BACKENDS = ("lmdb", "rocksdb")


def measure(size: Size) -> Sequence[Table]:
    keys = _KEYS[size]
    rows: list[list[Cell]] = []
    for backend in _BACKENDS:
        with tempfile.TemporaryDirectory(prefix="holdfast-benchmark-") as directory:
            taken = Restarts(backend, keys, Path(directory)).all()
        base = median(taken[0][1])
        rows += [_row(f"Holdfast, {backend}, {name}", times, base) for name, times in taken]
    _, *taken_by_spark = [spark_restart.seconds(keys, write_keys) for _ in range(_REPEATS + 1)]
    fresh, restarted = zip(*taken_by_spark, strict=True)
    rows.append(_row("Spark's aggregation, RocksDB, start without state", fresh, median(fresh)))
    rows.append(_row("Spark's aggregation, RocksDB, restart", restarted, median(fresh)))
    title = f"seconds until rows are processed again, {keys:,} keys of state"
    return [Table("recovery", title, ["", "s", "least", "most", "above a start without state"], rows)]


def _row(name: str, times: Sequence[float], base: float) -> list[Cell]:
    return [name, median(times), min(times), max(times), median(times) - base]


def write_keys(directory: Path, name: str, keys: int) -> None:
    """A file with one event of each key."""
    directory.mkdir(parents=True, exist_ok=True)
    every = np.arange(keys)
    hidden = directory / f".{name}"
    pq.write_table(pa.table({"key": every, "value": value_of(every)}), hidden)
    hidden.rename(directory / f"{name}.parquet")


class Restarts:
    """One job, started again and again."""

    def __init__(self, backend: str, keys: int, scratch: Path) -> None:
        self._keys = keys
        self._events = scratch / "data" / "events"
        self._files = 0
        self._arguments = JobArguments(
            "average", backend, scratch / "data", scratch, scratch / "result", keys, keys, 1, live=True
        )

    def all(self) -> list[tuple[str, list[float]]]:
        """Seconds of each repeat, by name; the first is the start without state."""
        # Spark starts with the first.
        _, *fresh = [self._started(1)[1] for _ in range(_REPEATS + 1)]
        client, _ = self._started(self._keys, keep=True)
        _until(lambda: _checkpointed(client), client)
        killed = [self._killed(client) for _ in range(_REPEATS)]
        _until(lambda: _checkpointed(client), client)
        client.cancel().result()
        location = _latest(client).location
        found = [("start without state", fresh)]
        for parallelism in (PARALLELISM, PARALLELISM + 1):
            settings = {"execution.state-recovery.path": location, "parallelism.default": str(parallelism)}
            times = [self._started(1, settings)[1] for _ in range(_REPEATS)]
            found.append((f"restart, {PARALLELISM} -> {parallelism} subtasks", times))
        return [*found, ("workers killed", killed)]

    def _started(
        self, rows: int, settings: dict[str, str] | None = None, keep: bool = False
    ) -> tuple[JobClient, float]:
        """A job that has read a new file of so many rows, and the seconds until then; ended unless it is kept."""
        if settings is None:
            # Without state: what lies there already is not of this job.
            for old in self._events.glob("*.parquet"):
                old.unlink()
        self._add_file(rows)
        config = configuration(self._arguments)
        config.set_string("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION")
        config.set_string("restart-strategy.type", "fixed-delay")
        config.set_string("restart-strategy.fixed-delay.attempts", "100")
        config.set_string("restart-strategy.fixed-delay.delay", "0 ms")
        for name, value in (settings or {}).items():
            config.set_string(name, value)
        began = time.time()
        client, _ = start(self._arguments, config)
        _until(lambda: _read(client) >= rows, client)
        finished = next(record.finished for record in client.get_history().epochs if record.rows)
        if not keep:
            client.cancel().result()
        return client, finished - began

    def _killed(self, client: JobClient) -> float:
        """Seconds from the death of the workers to the end of the first epoch with rows behind it."""
        before, killed = client.get_history().restarts, 0.0
        while client.get_history().restarts == before:
            killed = time.time()
            # Between two epochs nobody misses them: then it is tried again.
            for worker in processes.python_workers(os.getpid()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
            deadline = time.monotonic() + _NOTICED_SECONDS
            while client.get_history().restarts == before and time.monotonic() < deadline:
                time.sleep(0.01)
        self._add_file(1)

        def after() -> list[EpochRecord]:
            return [record for record in client.get_history().epochs if record.rows and record.finished > killed]

        _until(lambda: bool(after()), client)
        _until(lambda: _checkpointed(client), client)
        return after()[0].finished - killed

    def _add_file(self, rows: int) -> None:
        self._files += 1
        write_keys(self._events, f"part-{self._files:05}", rows)


def _read(client: JobClient) -> int:
    return sum(record.rows for record in client.get_history().epochs)


def _latest(client: JobClient) -> Any:
    return client.get_checkpoint_statistics().latest_completed


def _checkpointed(client: JobClient) -> bool:
    """Whether a checkpoint behind all rows is complete."""
    last = max((record.epoch for record in client.get_history().epochs if record.rows), default=0)
    latest = _latest(client)
    return latest is not None and latest.epoch >= last


def _until(reached: Callable[[], bool], client: JobClient) -> None:
    deadline = time.monotonic() + _WAIT_SECONDS
    while not reached():
        if not client.is_running():
            client.get_job_execution_result().result(1)
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {_WAIT_SECONDS} s the job is at {list(client.get_history().epochs)[-3:]}")
        time.sleep(0.02)


if __name__ == "__main__":
    raise SystemExit(suite.main(__doc__, measure))
