"""An archive of classes is used where there is one, and missed by nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit import class_archive


def test_without_an_archive_nothing_is_said_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_archive, "ARCHIVE", tmp_path / "classes.jsa")
    assert "Archive" not in class_archive.quick_start()
    (tmp_path / "classes.jsa").touch()
    assert f"-XX:SharedArchiveFile={tmp_path}/classes.jsa" in class_archive.quick_start().split()
