"""Files in, keyed state, partitioned and compacted files out. Runs as a driver program.

Each number goes to its key's folder with its place among the numbers of the key, so that the output tells whether any
row was lost or repeated, or state was mixed.
"""

from __future__ import annotations

import json
import logging
import sys
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from holdfast.common import Configuration, WatermarkStrategy
from holdfast.datastream import OutputTag, StreamExecutionEnvironment
from holdfast.datastream.connectors.file_system import (
    BAD_RECORD_TYPE,
    FileCompactStrategy,
    FileSink,
    FileSource,
    RollingPolicy,
)
from holdfast.errors import JobEndedError

KEYS = 3
BAD = OutputTag("bad", BAD_RECORD_TYPE)


def write_input(directory: Path, files: int, rows: int) -> None:
    """Files of ``rows`` numbers each, and one line in each that is none."""
    directory.mkdir(parents=True)
    for file in range(files):
        numbers = range(file * rows, (file + 1) * rows)
        lines = [f'{{"number": {number}}}\n' for number in numbers]
        (directory / f"{file}.json").write_text("".join([*lines, f"bad {file}\n"]))


def place(row: Any, seen: int | None) -> tuple[tuple[int, int, int], int]:
    count = (seen or 0) + 1
    return (row.number % KEYS, row.number, count), count


def run(directory: Path, settings: dict[str, str]) -> int:
    """Run the job to its end; how often it restarted."""
    configuration = Configuration.from_dict(
        {
            "holdfast.job-id": "files",
            "execution.checkpointing.dir": str(directory / "checkpoints"),
            "execution.checkpointing.interval": "100 ms",
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "20",
            "restart-strategy.fixed-delay.delay": "100 ms",
            "parallelism.default": "2",
            **settings,
        }
    )
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    source = FileSource.json(str(directory / "in"), "number BIGINT", bounded=True).with_bad_records_to(BAD)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
    placed = (
        numbers.key_by(lambda row: row.number % KEYS)
        .map_with_state(place, state_type=int, output_type="key BIGINT, number BIGINT, place BIGINT")
        .uid("placed")
    )
    strategy = FileCompactStrategy.builder().enable_compaction_on_checkpoint(2).build()
    compacted = FileSink.parquet(str(directory / "compacted")).partition_by("key").enable_compact(strategy)
    placed.sink_to(compacted.with_success_markers(3_600_000)).uid("compacted")
    rolled = FileSink.csv(str(directory / "rolled")).partition_by("key")
    placed.sink_to(rolled.with_rolling_policy(RollingPolicy.default_rolling_policy(4_000, 2_000, 2_000))).uid("rolled")
    numbers.get_side_output(BAD).sink_to(FileSink.json(str(directory / "bad"))).uid("bad")
    return env.execute("files").get_history().restarts


def audit(directory: Path, files: int, rows: int) -> None:
    """AssertionError unless every number is there once, in its place."""
    for sink in ("compacted", "rolled"):
        found = [row for path in sorted((directory / sink).glob("key=*/part-*")) for row in _rows_of(path)]
        numbers = [number for _, number, _ in found]
        assert sorted(numbers) == list(range(files * rows)), (sink, len(numbers), len(set(numbers)))
        places: dict[int, set[int]] = defaultdict(set)
        for key, number, place_of_row in found:
            assert key == number % KEYS
            places[key].add(place_of_row)
        assert all(seen == set(range(1, len(seen) + 1)) for seen in places.values())
        assert not [path for path in (directory / sink / "_holdfast_staging").rglob("*") if path.is_file()]
    bad = [json.loads(line)["record"] for path in (directory / "bad").glob("part-*") for line in path.open()]
    assert sorted(bad) == sorted(f"bad {file}" for file in range(files))
    marked = {path.parent.name for path in (directory / "compacted").rglob("_SUCCESS")}
    assert marked == {"compacted", *(f"key={key}" for key in range(KEYS))}


def _rows_of(path: Path) -> list[tuple[int, int, int]]:
    key = int(path.parent.name.removeprefix("key="))
    if path.suffix == ".parquet":
        table = pq.ParquetFile(path).read()
        return [(key, row["number"], row["place"]) for row in table.to_pylist()]
    lines = path.read_text().splitlines()
    assert lines[0] == '"number","place"' and lines.count(lines[0]) == 1
    return [(key, *map(int, line.split(","))) for line in lines[1:]]


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    logging.getLogger("py4j").setLevel(logging.ERROR)
    restarts = 0
    # A driver that was killed may have got to the end of the job.
    with suppress(JobEndedError):
        restarts = run(Path(sys.argv[1]), json.loads(sys.argv[2]))
    print(f"FINISHED restarts={restarts}", flush=True)
