"""Temporary files of a process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from holdfast.spark.run_folder import run_folder

PROGRAM = """
import signal, sys
from holdfast.spark.run_folder import run_folder
folder = run_folder()
(folder / "file").write_text("x")
print(folder, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def started(temporary: Path) -> tuple[subprocess.Popen[str], Path]:
    pipe = subprocess.PIPE
    environment = {**os.environ, "TMPDIR": str(temporary)}
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=pipe, stdout=pipe, text=True, env=environment)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_it_is_for_its_user_alone_and_the_same_for_the_whole_process(temporary: Path) -> None:
    folder = run_folder()
    assert folder == run_folder() and folder.parent.parent == temporary
    assert [path.stat().st_mode & 0o777 for path in (folder, folder.parent)] == [0o700, 0o700]


def test_it_goes_with_its_process(temporary: Path) -> None:
    process, folder = started(temporary)
    assert (folder / "file").exists()
    process.communicate("")
    assert process.returncode == 0 and not folder.exists()


def test_what_a_killed_process_left_is_removed_by_the_next_and_that_of_a_living_one_stays(temporary: Path) -> None:
    (killed, left), (living, kept) = started(temporary), started(temporary)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert left.exists()
    run_folder()
    assert not left.exists() and (kept / "file").exists()
    living.communicate("")


def test_processes_that_begin_together_leave_each_other_s_folder(temporary: Path) -> None:
    """One that was killed before it had a lock is there, too, and is removed."""
    parent = temporary / f"holdfast-run-{os.getuid()}"
    parent.mkdir(mode=0o700)
    (parent / "unfinished").mkdir()
    pipe, environment = subprocess.PIPE, {**os.environ, "TMPDIR": str(temporary)}
    command = [sys.executable, "-c", PROGRAM]
    processes = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment) for _ in range(6)]
    folders = []
    for process in processes:
        assert process.stdout is not None
        folders.append(Path(process.stdout.readline().strip()))
    assert all((folder / "file").exists() for folder in folders)
    assert not (parent / "unfinished").exists()
    for process in processes:
        process.communicate("")


@pytest.mark.parametrize("how", ["a link", "others may write", "a file"])
def test_a_folder_of_somebody_else_is_not_used(temporary: Path, how: str) -> None:
    parent = temporary / f"holdfast-run-{os.getuid()}"
    (temporary / "other").mkdir()
    if how == "a link":
        parent.symlink_to(temporary / "other")
    elif how == "a file":
        parent.write_text("")
    else:
        parent.mkdir()
        parent.chmod(0o777)
    folder = run_folder()
    assert folder.parent != parent and folder.is_dir()
    assert list((temporary / "other").iterdir()) == []
