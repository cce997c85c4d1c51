"""The folder that relative paths of a program are in, while its tasks run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.runtime.ready_files import ReadyFiles


def test_relative_paths_are_those_of_the_working_folder_for_the_block(tmp_path: Path) -> None:
    before = os.getcwd()
    with ReadyFiles(str(tmp_path)).entered():
        assert os.path.samefile(os.getcwd(), tmp_path)
    assert os.getcwd() == before


@pytest.mark.parametrize("works_in_a_folder", [True, False])
def test_the_folder_that_the_process_began_in_may_be_gone(
    works_in_a_folder: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python processes of Spark live longer than the folder of the program that they were started for."""
    began = tmp_path / "began"
    began.mkdir()
    monkeypatch.chdir(began)
    began.rmdir()
    with ReadyFiles(str(tmp_path) if works_in_a_folder else None).entered():
        if works_in_a_folder:
            Path("of-the-program").write_text("found")
    assert (tmp_path / "of-the-program").exists() is works_in_a_folder
    with pytest.raises(FileNotFoundError):
        os.getcwd()
