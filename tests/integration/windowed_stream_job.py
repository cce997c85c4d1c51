"""Windows of a stream of Spark's that has event time by ``withWatermark()``. Runs as a driver program.

files, two for each micro-batch  ->  key_by("k") -> window -> aggregate -> sink "out"
"""

from __future__ import annotations

import json
import logging
import os
import random
import sys
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from holdfast.datastream.aggregates import Average, Count, Max, Min, Sum
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.window import SlidingEventTimeWindows
from holdfast.errors import JobEndedError
from tests.integration.stream_job import session, streaming_environment

ROWS, DELAY = 60, 15
SIZE, SLIDE, OFFSET = 20, 8, 3
SCHEMA = "k string, v long, t long"
AGGREGATES: dict[str, Any] = {
    "rows": Count(),
    "values": Count("v"),
    "total": Sum("v"),
    "least": Min("v"),
    "most": Max("v"),
    "mean": Average("v"),
}

Event = tuple[str, int | None, int]


def rows_of(file: int) -> list[Event]:
    """Times before 1970 too; some rows are late, for some or for all of their windows."""
    chance = random.Random(file)
    return [
        (
            chance.choice("abcd"),
            chance.choice([None, *range(-40, 40)]),
            file * 30 - 90 + chance.randrange(-20, 30) - chance.choice([0, 0, 0, 0, 40, 70]),
        )
        for _ in range(ROWS)
    ]


def write_input(directory: Path, files: int) -> None:
    """Two parts of each file, which Spark reads in a task each: in the order of their times."""
    directory.mkdir()
    for number in range(2 * files):
        path, rows = directory / f"{number:02}.json", rows_of(number // 2)[number % 2 :: 2]
        path.write_text("\n".join(json.dumps(dict(zip("kvt", row, strict=True))) for row in rows))
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def figures(values: list[int | None]) -> tuple[Any, ...]:
    numbers = [value for value in values if value is not None]
    if not numbers:
        return len(values), 0, None, None, None, None
    return len(values), len(numbers), sum(numbers), min(numbers), max(numbers), sum(numbers) / len(numbers)


def expected(files: int, keyed: bool = True) -> list[tuple[Any, ...]]:
    """Results of the rows that are in time for what the files before had: Spark's rule."""
    windows: dict[tuple[str, int], list[int | None]] = defaultdict(list)
    newest: int | None = None
    for number in range(files):
        rows = rows_of(number)
        for key, value, time in rows:
            latest = (time - OFFSET) // SLIDE * SLIDE + OFFSET
            for start in range(latest, time - SIZE, -SLIDE):
                if newest is None or start + SIZE > newest - DELAY:
                    windows[key if keyed else "", start].append(value)
        newest = max([time for _, _, time in rows] + ([] if newest is None else [newest]))
    keys = [((key,) if keyed else (), start, values) for (key, start), values in windows.items()]
    return sorted((*key, start, start + SIZE, *figures(values)) for key, start, values in keys)


def timed(spark: SparkSession, directory: Path) -> DataFrame:
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 2).json(str(directory))
    return rows.selectExpr("timestamp_millis(t) AS at", "k", "v").withWatermark("at", f"{DELAY} milliseconds")


def run(where: Path) -> None:
    env = streaming_environment(where, "windows")
    windows = (
        env.from_data_frame(timed(session(), where / "in"), "files")
        .uid("files")
        .key_by("k")
        .window(SlidingEventTimeWindows.of(SIZE, SLIDE, OFFSET))
        .aggregate(**AGGREGATES)
    )
    windows.uid("windows").sink_to(FileSink.json(str(where / "out"))).uid("sink")
    env.execute("windows")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    # A driver that was killed may have got to the end of the job.
    with suppress(JobEndedError):
        run(Path(sys.argv[1]))
    print("FINISHED")
