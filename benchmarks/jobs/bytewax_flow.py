"""Jobs on Bytewax with recovery on. Variants: ``workers`` has two workers as threads of one process, ``processes`` two
processes with one worker each. Every file is a partition of the source.
"""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import bytewax.operators as op
import pyarrow.parquet as pq
from bytewax.dataflow import Dataflow
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.recovery import RecoveryConfig, init_db_dir
from bytewax.testing import cluster_main

from benchmarks.jobs.checks import CHECKED
from benchmarks.jobs.protocol import PARALLELISM, JobArguments, Marks, Tally, outcome_of_marks
from benchmarks.jobs.steps import STEPS

_BATCH = 10_000
_EPOCH = timedelta(seconds=1)
_PROCESS = "BENCHMARK_PROCESS"
_ADDRESSES = "BENCHMARK_ADDRESSES"


class FilePartition(StatefulSourcePartition[tuple[str, int], int]):
    """The rows of some files, one after the other. Where it is counts batches."""

    def __init__(self, paths: list[Path], batch: int | None) -> None:
        self._read = batch or 0
        self._batches = itertools.islice(_batches(paths), self._read, None)

    def next_batch(self) -> list[tuple[str, int]]:
        rows = next(self._batches)
        self._read += 1
        return rows

    def snapshot(self) -> int:
        return self._read


def _batches(paths: list[Path]) -> Iterator[list[tuple[str, int]]]:
    for path in paths:
        for batch in pq.ParquetFile(path).iter_batches(_BATCH):
            # Keys are strings in Bytewax.
            keys = [str(key) for key in batch.column("key").to_pylist()]
            yield list(zip(keys, batch.column("value").to_pylist(), strict=True))


class Files(FixedPartitionedSource[tuple[str, int], int]):
    """Files in as many partitions as workers."""

    def __init__(self, directory: Path) -> None:
        paths = sorted(directory.iterdir())
        self._shares = {str(number): paths[number::PARALLELISM] for number in range(PARALLELISM)}

    def list_parts(self) -> list[str]:
        return list(self._shares)

    def build_part(self, step_id: str, for_part: str, resume_state: int | None) -> FilePartition:
        return FilePartition(self._shares[for_part], resume_state)


class CheckingPartition(StatelessSinkPartition[tuple[str, tuple[int, ...]]]):
    def __init__(self, tally: Tally, columns: tuple[int, ...]) -> None:
        self._tally = tally
        self._columns = columns

    def write_batch(self, items: list[tuple[str, tuple[int, ...]]]) -> None:
        self._tally.rows += len(items)
        for column in self._columns:
            self._tally.checksum += sum(row[column] for _, row in items)

    def close(self) -> None:
        self._tally.write()


class CheckingSink(DynamicSink[tuple[str, tuple[int, ...]]]):
    def __init__(self, arguments: JobArguments) -> None:
        self._arguments = arguments

    def build(self, step_id: str, worker_index: int, worker_count: int) -> CheckingPartition:
        tally = Tally(self._arguments.scratch, worker_index)
        return CheckingPartition(tally, CHECKED[self._arguments.job])


def flow(arguments: JobArguments, marks: Marks) -> Dataflow:
    step = STEPS[arguments.job]

    def mapper(state: Any, item: tuple[int, int]) -> tuple[Any, tuple[tuple[int, ...], ...]]:
        marks.row()
        state, row = step(state, *item)
        return state, () if row is None else (row,)

    dataflow = Dataflow("benchmark")
    events = op.input("events", dataflow, Files(arguments.data / "events"))
    keyed = op.map("keys", events, lambda event: (event[0], (int(event[0]), event[1])))
    op.output("check", op.stateful_flat_map("step", keyed, mapper), CheckingSink(arguments))
    return dataflow


def run_process(arguments: JobArguments, process: int, addresses: list[str], workers: int) -> None:
    """One process of the cluster, with its share of the marks."""
    marks = Marks(arguments.scratch, process, arguments.epoch_rows // 16)
    recovery = RecoveryConfig(str(arguments.scratch / "recovery"))
    cluster_main(
        flow(arguments, marks),
        addresses,
        process,
        epoch_interval=_EPOCH,
        recovery_config=recovery,
        worker_count_per_proc=workers,
    )
    marks.write()


def free_addresses(count: int) -> list[str]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    addresses = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    for one in sockets:
        one.close()
    return addresses


def main() -> None:
    arguments = JobArguments.parse()
    if _PROCESS in os.environ:
        run_process(arguments, int(os.environ[_PROCESS]), os.environ[_ADDRESSES].split(","), 1)
        return
    recovery = arguments.scratch / "recovery"
    recovery.mkdir()
    init_db_dir(recovery, PARALLELISM)
    if arguments.variant == "workers":
        run_process(arguments, 0, [], PARALLELISM)
    else:
        addresses = ",".join(free_addresses(PARALLELISM))
        processes = [
            subprocess.Popen(
                [sys.executable, "-m", "benchmarks.jobs.bytewax_flow", *sys.argv[1:]],
                env={**os.environ, _PROCESS: str(number), _ADDRESSES: addresses},
            )
            for number in range(PARALLELISM)
        ]
        failed = [process.returncode for process in processes if process.wait()]
        if failed:
            raise SystemExit(f"processes of the cluster ended with {failed}")
    outcome_of_marks(arguments.scratch, arguments.epoch_rows).write(arguments.result)


if __name__ == "__main__":
    main()
