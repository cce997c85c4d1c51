"""A job with files that wait is killed between a checkpoint and its commit; meanwhile something damages what waits."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.job.counting import EPOCHS, counts_of, settings, staged
from tests.job.test_file_sink_jobs import rows_in
from tests.kit.faults import FaultPlan

_PROGRAM = """
import json, sys
from pathlib import Path
from holdfast.testing.in_process import InProcessEngine
from tests.job.counting import EPOCHS, counting
from tests.job.test_file_sink_jobs import compacting
with InProcessEngine().installed():
    counting(json.loads(sys.argv[2]), EPOCHS, compacting(Path(sys.argv[1]), 3)).get_job_execution_result().result(60)
"""
#: The second checkpoint's, with files that wait since the first one; the third's, which joins and publishes them.
MOMENTS = [("checkpoint.after-metadata", 2), ("sink.before-commit", 3)]


@pytest.fixture(scope="module", params=MOMENTS, ids=["waiting", "joined"])
def kill(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The job's directory, and a copy of all that it held when the job was killed."""
    directory = tmp_path_factory.mktemp("killed") / "job"
    faults = FaultPlan(directory.parent / "faults")
    faults.add(request.param[0], "kill", hit=request.param[1])
    assert run(directory, **faults.environment).returncode == -signal.SIGKILL
    assert rows_in(directory / "out") == []
    return directory, Path(shutil.copytree(directory, directory.parent / "copy"))


@pytest.fixture
def killed(kill: tuple[Path, Path]) -> Path:
    """The job's directory, as the kill left it."""
    directory, copy = kill
    shutil.rmtree(directory)
    shutil.copytree(copy, directory)
    return directory


def run(directory: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    retention = {"execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION"}
    given = settings(directory, **{"restart-strategy.type": "none"}, **retention)
    return subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(directory / "out"), json.dumps(given)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        timeout=120,
        check=False,
        capture_output=True,
        text=True,
    )


def held(directory: Path) -> list[Path]:
    """Markers of files that wait."""
    return sorted(path for path in staged(directory / "out") if path.suffix == ".held")


def damage(directory: Path, place: int) -> tuple[str, Path]:
    """Change a digit in one of the staged files, in the order in which they were written; what it was, and where."""
    files = [path for path in staged(directory / "out") if path.suffix == ".json"]
    path = sorted(files, key=lambda path: (path.name.split("-")[1], path.name.count("."), path.name))[place]
    content = path.read_text()
    path.write_text(content[:-3] + str((int(content[-3]) + 1) % 10) + content[-2:])
    return content, path


def assert_goes_on_exactly(directory: Path) -> None:
    done = run(directory)
    assert done.returncode == 0, done.stderr[-4000:]
    assert rows_in(directory / "out") == counts_of(EPOCHS)
    assert staged(directory / "out") == []


def test_every_row_is_published_once_behind_a_kill(killed: Path) -> None:
    assert_goes_on_exactly(killed)


def test_lost_markers_cost_nothing(killed: Path) -> None:
    markers = held(killed)
    assert markers
    for marker in markers:
        marker.unlink()

    assert_goes_on_exactly(killed)


def test_a_damaged_file_is_refused_by_name(killed: Path) -> None:
    """The last file that the checkpoint's epoch wrote. When it is as it was again, the job goes on exactly."""
    content, path = damage(killed, -1)
    refused = run(killed)
    assert refused.returncode == 1
    assert f"{path.name}: the checksum of the content is" in refused.stderr, refused.stderr[-4000:]
    assert set(rows_in(killed / "out")) <= set(counts_of(EPOCHS))
    path.write_text(content)

    assert_goes_on_exactly(killed)


def test_a_damaged_file_is_not_published(killed: Path) -> None:
    """The first file that waits. Where its rows are in another one already, nobody needs it."""
    _, path = damage(killed, 0)
    done = run(killed)
    if done.returncode == 0:
        assert rows_in(killed / "out") == counts_of(EPOCHS)
    else:
        assert f"{path.name}: the checksum of the content is" in done.stderr, done.stderr[-4000:]
        assert set(rows_in(killed / "out")) <= set(counts_of(EPOCHS))


def test_a_file_that_something_deleted_is_not_called_published(killed: Path) -> None:
    """Where its rows are in another file already, nobody needs it."""
    path = held(killed)[0].with_suffix("")
    path.unlink()
    done = run(killed)
    if done.returncode == 0:
        assert rows_in(killed / "out") == counts_of(EPOCHS)
    else:
        assert f"{path.name} with" in done.stderr
        assert "If it did not, something else deleted them" in done.stderr
