"""Totals of a stream of Spark's, whose rows Spark combines. Runs as a driver program.

files, one for each micro-batch  ->  key_by("k") -> aggregate -> sink "out"
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

from holdfast.datastream.aggregates import Average, Count, Max, Sum
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.errors import JobEndedError
from tests.integration.stream_job import session, streaming_environment

ROWS, KEYS = 60, 7


def rows_of(file: int) -> list[tuple[int, int]]:
    return [(value * value % KEYS, value * 31 % 97 - 40) for value in range(file * ROWS, (file + 1) * ROWS)]


def write_input(directory: Path, files: int) -> None:
    """Spark reads files in the order of their times."""
    directory.mkdir()
    for number in range(files):
        path = directory / f"{number}.json"
        path.write_text("\n".join(json.dumps({"k": key, "v": value}) for key, value in rows_of(number)))
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def expected(files: int) -> list[tuple[int, int, int, int, float]]:
    """After each file, the totals so far of the keys that it has."""
    seen: dict[int, list[int]] = defaultdict(list)
    results = []
    for number in range(files):
        for key, value in rows_of(number):
            seen[key].append(value)
        for key in {key for key, _ in rows_of(number)}:
            values = seen[key]
            results.append((key, len(values), sum(values), max(values), sum(values) / len(values)))
    return sorted(results)


def run(where: Path) -> None:
    reader = session().readStream.schema("k long, v long").option("maxFilesPerTrigger", 1)
    env = streaming_environment(where, "totals")
    totals = (
        env.from_data_frame(reader.json(str(where / "in")), "files")
        .uid("files")
        .key_by("k")
        .aggregate(rows=Count(), total=Sum("v"), most=Max("v"), mean=Average("v"))
    )
    totals.uid("totals").sink_to(FileSink.json(str(where / "out"))).uid("sink")
    env.execute("totals")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    # A driver that was killed may have got to the end of the job.
    with suppress(JobEndedError):
        run(Path(sys.argv[1]))
    print("FINISHED")
