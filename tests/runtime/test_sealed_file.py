"""Files that only an attempt itself can have written."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.runtime.sealed_file import SealedFiles

FILES = SealedFiles(b"secret", "job/1/0/0")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    FILES.write(tmp_path / "7-nonce.memory", "7-nonce", b"fields of functions")
    return tmp_path / "7-nonce.memory"


def test_what_was_written_is_read(path: Path) -> None:
    assert FILES.read(path, "7-nonce") == b"fields of functions"
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    with pytest.raises(FileNotFoundError):
        FILES.read(path.with_name("8-nonce.memory"), "8-nonce")


def test_every_changed_byte_and_every_cut_is_noticed(path: Path) -> None:
    content = path.read_bytes()
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        assert FILES.read(path, "7-nonce") is None
        path.write_bytes(content[:place])
        assert FILES.read(path, "7-nonce") is None


def test_files_of_others_and_of_other_versions_are_not_taken(path: Path) -> None:
    assert FILES.read(path, "8-nonce") is None
    assert SealedFiles(b"other secret", "job/1/0/0").read(path, "7-nonce") is None
    assert SealedFiles(b"secret", "job/1/0/1").read(path, "7-nonce") is None
