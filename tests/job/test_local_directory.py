"""The local directory of whole jobs: who may write to it, and what is taken from it."""

from __future__ import annotations

import os
import pickle
import stat
from pathlib import Path

import pytest

from holdfast.datastream.connectors.file_system import FileSink
from holdfast.errors import JobExecutionError, UnfitExecutorError
from holdfast.runtime.epoch import EpochSpec
from holdfast.runtime.live_task import forget_live_tasks
from holdfast.testing.in_process import InProcessEngine
from tests.job.counting import EPOCHS, counting, counts_of, settings
from tests.job.test_file_sink_jobs import rows_in


def run(tmp_path: Path, **changes: str) -> None:
    sink = FileSink.json(str(tmp_path / "out")).partition_by("f0")
    counting(settings(tmp_path, **changes), EPOCHS, sink).get_job_execution_result().result(60)


def test_a_directory_that_others_can_write_to_is_refused_once(in_process: InProcessEngine, tmp_path: Path) -> None:
    """No restart would mend it."""
    (tmp_path / "local").mkdir()
    (tmp_path / "local").chmod(0o777)

    with pytest.raises(JobExecutionError, match="local cannot hold state: its rights are 777") as failed:
        run(tmp_path)
    assert isinstance(failed.value.__cause__, UnfitExecutorError)
    assert in_process.epochs == []
    assert list((tmp_path / "local").iterdir()) == []


@pytest.mark.parametrize("backend", ["heap", "lmdb", "rocksdb"])
def test_nobody_else_can_look_into_it(in_process: InProcessEngine, tmp_path: Path, backend: str) -> None:
    """What RocksDB makes by itself has the rights that the umask leaves, in directories that nobody else enters."""
    folders: set[int] = set()
    files: dict[Path, int] = {}

    def look(spec: EpochSpec) -> None:
        root = tmp_path / "local"
        folders.update(mode_of(path) for path in (root, *root.glob("*"), *root.glob("*/*")))
        found = [path for path in root.rglob("*") if path.is_file() and not {"1", "db"} & set(path.parts[-2:-1])]
        files.update((path, mode_of(path)) for path in found)

    in_process.before_epoch = look
    run(tmp_path, **{"state.backend.type": backend})

    assert folders == {0o700}
    assert len(files) > 20
    assert {path: oct(mode) for path, mode in files.items() if mode != 0o600} == {}


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


class Planted:
    """Runs code when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self._marker = marker

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self._marker),)


@pytest.mark.parametrize("with_head", [False, True])
def test_what_somebody_plants_is_not_unpickled(
    in_process: InProcessEngine, tmp_path: Path, with_head: bool
) -> None:
    """The job goes back to its checkpoint instead: another attempt, and exactly the same rows."""
    planted: list[Path] = []

    def plant(spec: EpochSpec) -> None:
        forget_live_tasks("job", before_attempt=1 << 30)
        files = sorted((tmp_path / "local").rglob("level-1-slot-0/*.memory"))
        if spec.epoch >= 4 and not planted:
            for path in files:
                head = path.read_bytes()[:38] if with_head else b""
                path.write_bytes(head + pickle.dumps(Planted(tmp_path / "run")))
                planted.append(path)

    in_process.before_epoch = plant
    run(tmp_path)

    assert planted
    assert not (tmp_path / "run").exists()
    assert rows_in(tmp_path / "out") == counts_of(EPOCHS)
    assert {attempt for attempt, _ in in_process.epochs} == {1, 2}


@pytest.mark.parametrize("backend", ["heap", "lmdb", "rocksdb"])
def test_an_attempt_does_not_begin_with_damaged_state(
    in_process: InProcessEngine, tmp_path: Path, backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Every file of the stores has a flipped bit when the second attempt begins. It is the last one."""
    failed: list[int] = []

    def damage_and_fail(spec: EpochSpec) -> None:
        if spec.epoch == 4 and not failed:
            failed.append(spec.epoch)
            for path in (tmp_path / "local").rglob("*"):
                if path.is_file() and path.name not in ("lock.mdb", "LOCK", "stamp"):
                    flip_bits(path)
            raise ValueError("the worker is lost")

    in_process.before_epoch = damage_and_fail
    run(tmp_path, **{"state.backend.type": backend})

    assert rows_in(tmp_path / "out") == counts_of(EPOCHS)
    assert {attempt for attempt, _ in in_process.epochs} == {1, 2}
    assert "It is not used: the state comes from the checkpoint" in caplog.text


def flip_bits(path: Path) -> None:
    """One in every 64 bytes that are used."""
    content = bytearray(path.read_bytes())
    for place in [place for place, byte in enumerate(content) if byte][::64]:
        content[place] ^= 4
    path.write_bytes(content)
