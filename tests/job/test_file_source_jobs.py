"""File sources in whole jobs: rescaling over savepoints, bad records, kills."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import JobClient, WatermarkStrategy
from holdfast.common.watermark_strategy import TimestampAssigner
from holdfast.datastream import OutputTag
from holdfast.datastream.connectors.file_system import BAD_RECORD_TYPE, FileSink, FileSource
from holdfast.errors import ProgramError
from holdfast.runtime.epoch import EpochSpec
from holdfast.testing.in_process import InProcessEngine
from tests.connectors.directories import committed_files
from tests.integration.programs import environment
from tests.job.counting import settings

BAD = OutputTag("bad", BAD_RECORD_TYPE)


class Seconds(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value.id) * 1000


def put(path: Path, ids: range, bad: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}")
    draft.write_text("".join(f'{{"id": {number}}}\n' for number in ids) + bad)
    draft.rename(path)


def copying(
    tmp_path: Path, source: FileSource, parallelism: int, strategy: WatermarkStrategy | None = None, **changes: str
) -> JobClient:
    """A job that writes the rows of files to other files, and bad records beside them."""
    given = settings(tmp_path, **{"holdfast.epoch.max-rows": "10", **changes})
    env = environment(**given).set_parallelism(parallelism)
    rows = env.from_source(source, strategy or WatermarkStrategy.no_watermarks(), "files").uid("files")
    rows.get_side_output(BAD).sink_to(FileSink.json(str(tmp_path / "bad"))).uid("bad")
    rows.sink_to(FileSink.json(str(tmp_path / "out"))).uid("out")
    return env.execute_async("copying")


def published(path: Path) -> list[Any]:
    return [json.loads(line) for file in committed_files(path) for line in file.read_text().splitlines()]


def ids_in(tmp_path: Path) -> list[int]:
    return sorted(row["id"] for row in published(tmp_path / "out"))


def json_source(tmp_path: Path) -> FileSource:
    return FileSource.json(str(tmp_path / "in"), "id BIGINT").monitor_continuously(0).with_bad_records_to(BAD)


def wait_for(condition: Any) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_no_file_is_lost_or_read_twice_over_savepoints_with_other_parallelism(
    in_process: InProcessEngine, tmp_path: Path
) -> None:
    total = 0
    changes: dict[str, str] = {"execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints")}
    for run, parallelism in enumerate([3, 1, 4, 2]):
        for number in range(6):
            put(tmp_path / "in" / str(number % 2) / f"{run}-{number}.json", range(total, total + 7), bad=f"bad {run}\n")
            total += 7
        client = copying(tmp_path, json_source(tmp_path), parallelism, **changes)
        # The last run reads everything; the others are stopped in the middle.
        wanted = total if run == 3 else total - 20
        wait_for(lambda wanted=wanted: len(ids_in(tmp_path)) >= wanted)
        changes["execution.state-recovery.path"] = client.stop_with_savepoint(False).result(30)
    assert ids_in(tmp_path) == list(range(total))
    bad = sorted(row["record"] for row in published(tmp_path / "bad"))
    assert bad == [f"bad {run}" for run in range(4) for _ in range(6)]


def test_failures_while_files_appear(in_process: InProcessEngine, tmp_path: Path) -> None:
    """Every third epoch is lost after it ran."""
    (tmp_path / "in").mkdir()
    added = 0

    def lose(spec: EpochSpec) -> None:
        nonlocal added
        if added < 90:
            put(tmp_path / "in" / f"{added % 7}-{added}.json", range(added, added + 9), bad="nonsense\n")
            added += 9
        if len(in_process.epochs) % 3 == 0 and len(in_process.epochs) < 30:
            raise RuntimeError("the epoch is lost")

    in_process.after_epoch = lose
    client = copying(tmp_path, json_source(tmp_path), 3, **{"restart-strategy.fixed-delay.attempts": "50"})
    wait_for(lambda: len(ids_in(tmp_path)) >= 90 and len(published(tmp_path / "bad")) >= 10)
    client.cancel().result(30)
    assert ids_in(tmp_path) == list(range(90))
    assert len(published(tmp_path / "bad")) == 10


def test_bad_records_of_a_stream_with_event_time(in_process: InProcessEngine, tmp_path: Path) -> None:
    """The side output is that of the source, before its rows get their time."""
    put(tmp_path / "in" / "a.json", range(3), bad="nonsense")
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Seconds())
    source = json_source(tmp_path).process_static_file_set()
    copying(tmp_path, source, 1, strategy).get_job_execution_result().result(30)

    assert ids_in(tmp_path) == [0, 1, 2]
    (bad,) = published(tmp_path / "bad")
    assert (bad["path"], bad["position"], bad["record"]) == (str(tmp_path / "in" / "a.json"), 30, "nonsense")


def test_a_source_has_no_other_side_output(tmp_path: Path) -> None:
    stream = environment().from_source(
        FileSource.text(str(tmp_path)).with_bad_records_to(BAD), WatermarkStrategy.no_watermarks(), "files"
    )

    with pytest.raises(ProgramError, match="source 'files' has no side output 'other'"):
        stream.get_side_output(OutputTag("other"))
