"""A job of an earlier version that died between a checkpoint and its commit: its rows are published, each once."""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path

import pytest

from holdfast.datastream.connectors.file_system import FileSink
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import published
from tests.job.counting import EPOCHS, counts_of, staged
from tests.job.test_file_sink_jobs import rows_in
from tests.job.test_snapshots_of_before import FIXTURES
from tests.job.write_open_files import EPOCH, HERE, start, write

PACKED = sorted(FIXTURES.glob("*/open-files.zip"))
#: The job that goes on: from its own directory, or another one from the checkpoint.
WAYS = {
    "the job itself": {},
    "another job": {"holdfast.job-id": "next", "execution.state-recovery.path": str(HERE / f"chk/job/chk-{EPOCH}")},
}


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "job").mkdir()
    monkeypatch.chdir(tmp_path / "job")


def goes_on(local: Path, changes: dict[str, str]) -> None:
    plain, waiting = Path("plain"), Path("waiting")
    assert published(plain) == counts_of(EPOCHS[: EPOCH - 1])
    assert staged(plain), "the transactions of the last epoch are open"
    assert rows_in(waiting) == []
    assert {file.suffix for file in staged(waiting)} == {".json", ".held"}
    start(FileSink.json(str(HERE / "plain")), local, **changes).get_job_execution_result().result(60)
    assert published(plain) == counts_of(EPOCHS)
    assert rows_in(waiting) == counts_of(EPOCHS)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("packed", PACKED, ids=lambda packed: packed.parent.name)
def test_open_transactions_and_held_files_of_an_earlier_version(
    in_process: InProcessEngine, tmp_path: Path, packed: Path, way: str
) -> None:
    with zipfile.ZipFile(packed) as file:
        file.extractall(".")
    goes_on(tmp_path / "local", WAYS[way])
    if way == "the job itself":
        assert staged(Path("plain")) == staged(Path("waiting")) == []


@pytest.mark.slow
def test_open_transactions_and_held_files_of_this_version(in_process: InProcessEngine, tmp_path: Path) -> None:
    """What writes the fixture goes on to work. The lease that was copied has to run out."""
    write(tmp_path / "left", tmp_path / "before")
    shutil.rmtree(tmp_path / "job")
    shutil.move(tmp_path / "left", tmp_path / "job")
    os.chdir(tmp_path / "job")
    goes_on(tmp_path / "local", WAYS["the job itself"])
