"""A driver program for tests on a cluster: runs jobs one after the other in one application, and tells their course.

    python cluster_program.py DIRECTORY JSON

The JSON names the jobs with their settings. For each job a line ``HISTORY {...}`` is printed, also when it failed.
"""

from __future__ import annotations

import json
import logging
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from holdfast.common import Configuration, Duration, Row, Types, WatermarkStrategy
from holdfast.common.watermark_strategy import TimestampAssigner
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.stream_execution_environment import StreamExecutionEnvironment
from holdfast.job.job import JobHistory
from tests.integration import audited_job
from tests.integration.programs import PAIR, CountUntilTimer, CountWithKeyedState

MINUTE = 60_000
OUT_OF_ORDERNESS = 3
TRIPLE = Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG()])


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value: tuple[int, int], record_timestamp: int) -> int:
        return value[1]


def pairs(rows: int, keys: int) -> list[tuple[int, int]]:
    return [(number % keys, number * number) for number in range(rows)]


def events(minutes: int, keys: int) -> list[tuple[int, int]]:
    """One row per key and minute, in the order of time."""
    return [(key, minute * MINUTE + key) for minute in range(minutes) for key in range(keys)]


def firings(rows: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """What ``CountUntilTimer`` must give when all rows come through one channel, in any order."""
    counts: Counter[int] = Counter()
    timers: set[tuple[int, int]] = set()
    fired = []
    for key, time in [*rows, (-1, 1 << 62)]:
        if key >= 0:
            counts[key] += 1
            timers.add((time - time % MINUTE + MINUTE, key))
        for timer in sorted(t for t in timers if t[0] < time - OUT_OF_ORDERNESS):
            timers.remove(timer)
            fired.append((timer[1], counts[timer[1]], timer[0]))
    return sorted(fired)


def average(env: StreamExecutionEnvironment, directory: Path, rows: int, keys: int) -> None:
    stream = env.from_collection(pairs(rows, keys), type_info=PAIR).key_by(lambda row: row[0])
    stream.flat_map(CountWithKeyedState(), PAIR).sink_to(FileSink.json(str(directory / "out")))


def timers(env: StreamExecutionEnvironment, directory: Path, minutes: int, keys: int) -> None:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(OUT_OF_ORDERNESS))
    timed = strategy.with_timestamp_assigner(SecondField())
    stream = env.from_collection(events(minutes, keys), type_info=PAIR).assign_timestamps_and_watermarks(timed)
    # With one channel a timer sees exactly the rows before its time.
    counted = stream.set_parallelism(1).key_by(lambda row: row[0]).process(CountUntilTimer(), TRIPLE)
    counted.sink_to(FileSink.json(str(directory / "out")))


def queried(env: StreamExecutionEnvironment, directory: Path, rows: int, keys: int) -> None:
    """Running counts of rows that have gone through a query."""
    pair = Types.ROW_NAMED(["key", "value"], [Types.LONG(), Types.LONG()])
    named = env.from_collection(pairs(rows, keys), type_info=PAIR).map(lambda row: Row(key=row[0], value=row[1]), pair)
    env.create_temporary_view("pairs", named.rebalance())
    stream = env.sql("SELECT key, value FROM pairs WHERE key % 3 <> 0").key_by(lambda row: row.key, Types.LONG())
    counts = stream.map_with_state(count, state_type=int, output_type=PAIR)
    counts.sink_to(FileSink.json(str(directory / "out")))


def count(row: Row, seen: int | None) -> tuple[tuple[int, int], int]:
    return (row.key, (seen or 0) + 1), (seen or 0) + 1


def run_job(directory: Path, job: str, settings: dict[str, str], **size: int) -> JobHistory:
    directory.mkdir(exist_ok=True)
    if job == "audited":
        history: JobHistory = audited_job.run(directory, settings, **size)
        return history
    checkpoints = {
        "execution.checkpointing.interval": "300 ms",
        "execution.checkpointing.dir": str(directory / "checkpoints"),
        "holdfast.job-id": directory.name,
        "parallelism.default": "2",
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict({**checkpoints, **settings}))
    {"average": average, "timers": timers, "queried": queried}[job](env, directory, **size)
    return env.execute(job).get_history()


def tell(name: str, history: JobHistory) -> None:
    course: dict[str, Any] = {
        "name": name,
        "status": history.status.value,
        "restarts": history.restarts,
        "restored_bytes": history.restored_bytes,
        "failures": [[type(f.error).__name__, str(f.error)] for f in history.failures],
        "placement": [
            [record.attempt, epoch, executors]
            for record, (epoch, executors) in zip(history.epochs, history.placement, strict=True)
        ],
    }
    print(f"HISTORY {json.dumps(course)}", flush=True)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("py4j").setLevel(logging.ERROR)
    root, jobs = Path(sys.argv[1]), json.loads(sys.argv[2])
    for name, given in jobs.items():
        tell(name, run_job(root / name, **given))
