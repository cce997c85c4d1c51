"""Spark's streams as sources, on local Spark."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Row, Types
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.errors import ProgramError
from tests.integration.programs import environment, published

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.slow]

OUT = Types.ROW_NAMED(["k", "n"], [Types.LONG(), Types.LONG()])


def write_files(directory: Path, first: int, count: int, rows: int = 20) -> None:
    """Files of one micro-batch each, with rows of seven keys."""
    directory.mkdir(exist_ok=True)
    for number in range(first, first + count):
        lines = [json.dumps({"k": value % 7, "v": value}) for value in range(number * rows, (number + 1) * rows)]
        part = directory / f".{number:04}"
        part.write_text("\n".join(lines))
        part.rename(directory / f"{number:04}.json")


def read_files(spark: Any, directory: Path) -> Any:
    return spark.readStream.schema("k long, v long").option("maxFilesPerTrigger", 1).json(str(directory))


def counted(files: int, rows: int = 20) -> list[tuple[int, int]]:
    """What counting the rows of each key must give."""
    total = files * rows
    return sorted((k, n) for k in range(7) for n in range(1, len(range(k, total, 7)) + 1))


def count(row: Any, seen: int | None) -> tuple[Row, int]:
    seen = (seen or 0) + 1
    return Row(k=row.k, n=seen), seen


def settings(directory: Path, **changes: str) -> dict[str, str]:
    return {
        "holdfast.job-id": "job",
        "holdfast.state.local-dir": str(directory / "local"),
        "execution.checkpointing.dir": str(directory / "chk"),
        "execution.checkpointing.savepoint-dir": str(directory / "savepoints"),
        "execution.checkpointing.interval": "10 ms",
        "execution.checkpointing.num-retained": "30",
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        **changes,
    }


def counting(given: dict[str, str], frame: Any, out: Path) -> Any:
    env = environment(**given)
    stream = env.from_data_frame(frame, "files").uid("files")
    counts = stream.key_by(lambda row: row.k, Types.LONG()).map_with_state(count, state_type=int, output_type=OUT)
    counts.uid("count").sink_to(FileSink.json(str(out))).uid("sink")
    return env.execute_async("streams")


def test_files_that_are_there_are_counted_and_end_the_job(spark: Any, tmp_path: Path) -> None:
    write_files(tmp_path / "in", 0, 4)
    given = settings(tmp_path, **{"holdfast.stream.available-now": "true"})
    job = counting(given, read_files(spark, tmp_path / "in"), tmp_path / "out")
    job.get_job_execution_result().result(120)
    assert published(tmp_path / "out") == counted(4)
