"""Packages of a program: installed once on a host, whole or not at all."""

from __future__ import annotations

import sys
from multiprocessing import get_context
from pathlib import Path

import pytest

from holdfast.errors import UnfitExecutorError
from holdfast.runtime.requirements import SentRequirements, installed, packages_folder
from holdfast.runtime.task_files import SentFile, TaskFiles, undone_search_path
from tests.kit.wheel import make_wheel


def sent(root: Path, text: str = "once==1.0\n", digest: str = "one") -> SentRequirements:
    make_wheel(root / "cache", "once", "NUMBER = 1\n")
    (root / "requirements.txt").write_text(text)
    return SentRequirements("requirements.txt", digest, "cache")


def install_and_tell(requirements: SentRequirements, root: Path, local_dir: str) -> float:
    """For a process of its own: when what it found was made."""
    return (installed(requirements, root, local_dir) / "once.py").stat().st_mtime_ns


def test_processes_of_a_host_install_once(tmp_path: Path) -> None:
    requirements, local = sent(tmp_path), str(tmp_path / "local")
    with get_context("spawn").Pool(3) as pool:
        found = pool.starmap(install_and_tell, [(requirements, tmp_path, local)] * 3)
    assert len(set(found)) == 1
    folders = [path for path in packages_folder(local).iterdir() if path.is_dir()]
    assert len(folders) == 1 and folders[0].name.startswith(f"one-{sys.implementation.cache_tag}")


def test_what_pip_refuses_leaves_nothing_and_can_be_mended(tmp_path: Path) -> None:
    local = str(tmp_path / "local")
    with pytest.raises(UnfitExecutorError, match=r"(?s)as wheels for the executors' Python.*no_such_package"):
        installed(sent(tmp_path, "no_such_package\n"), tmp_path, local)
    assert not [path for path in packages_folder(local).iterdir() if path.is_dir()]
    assert (installed(sent(tmp_path), tmp_path, local) / "once.py").is_file()


def test_without_pip_the_one_that_python_brings_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requirements = sent(tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert (installed(requirements, tmp_path, str(tmp_path / "local")) / "once.py").is_file()


def test_modules_are_searched_for_as_long_as_the_job_lasts(tmp_path: Path) -> None:
    (tmp_path / "unpacked").mkdir()
    before = list(sys.path)
    with undone_search_path():
        files = TaskFiles(archives=("unpacked",), modules=("/modules",), requirements=sent(tmp_path))
        ready = files.make_ready(str(tmp_path), str(tmp_path / "local"))
        assert ready.working_folder == str(tmp_path)
        (packages,) = (path for path in sys.path if path.startswith(str(packages_folder(str(tmp_path / "local")))))
        assert sys.path[0] == before[0] and sys.path[1:3] == ["/modules", packages]
        assert sys.path[-2:] == [str(tmp_path), str(tmp_path / "unpacked")]
        # The next job of the process has other files.
        TaskFiles(modules=("/others",)).make_ready(str(tmp_path), None)
        assert [path for path in sys.path if path not in before] == ["/others"]
    assert sys.path == before


def test_what_spark_searches_stays_when_a_job_has_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Single modules that were sent lie in the folder that archives are unpacked in."""
    monkeypatch.setattr(sys, "path", [sys.path[0], str(tmp_path), *sys.path[1:]])
    before = list(sys.path)
    TaskFiles(archives=("unpacked",)).make_ready(str(tmp_path), None)
    assert sys.path == [*before, str(tmp_path / "unpacked")]
    TaskFiles().make_ready(str(tmp_path), None)
    assert sys.path == before


def test_a_file_can_be_run_where_the_program_says_so(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("")
    ready = TaskFiles(cached=(SentFile("tool", "tool", True),)).make_ready(str(tmp_path), None)
    assert Path(ready.cached["tool"]).stat().st_mode & 0o111
    assert ready.working_folder is None


def test_a_folder_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    requirements, local = sent(tmp_path), str(tmp_path / "local")
    installed(requirements, tmp_path, local)
    packages_folder(local).chmod(0o777)
    with pytest.raises(UnfitExecutorError, match="other users can write to it"):
        installed(requirements, tmp_path, local)
