from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import CorruptFileError
from holdfast.storage.checksum import check_content, check_file, checksum
from holdfast.storage.local import LocalStorage


def test_known_value() -> None:
    assert checksum(b"") == "99aa06d3014798d86001c324468d497f"


@given(st.lists(st.binary()))
def test_parts_are_one_sequence(parts: list[bytes]) -> None:
    assert checksum(*parts) == checksum(b"".join(parts))


@given(st.binary(min_size=1), st.data())
def test_any_changed_byte_is_seen(content: bytes, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(content) - 1))
    other = data.draw(st.integers(1, 255))
    changed = bytearray(content)
    changed[position] ^= other
    check_content("file", content, len(content), checksum(content))
    with pytest.raises(CorruptFileError, match="file: the checksum"):
        check_content("file", bytes(changed), len(content), checksum(content))


class TestFiles:
    content = bytes(range(256)) * 9000  # more than two pieces

    def write(self, root: Path, content: bytes) -> LocalStorage:
        storage = LocalStorage(str(root))
        storage.write_atomic("file", content)
        return storage

    def test_an_intact_file(self, tmp_path: Path) -> None:
        check_file(self.write(tmp_path, self.content), "file", len(self.content), checksum(self.content))

    @pytest.mark.parametrize(
        "damage",
        [lambda data: data[:-1], lambda data: data + b"\0", lambda data: data[:-1] + b"\0", lambda data: b""],
    )
    def test_damage_names_the_file(self, tmp_path: Path, damage: object) -> None:
        storage = self.write(tmp_path, damage(self.content))  # type: ignore[operator]  # a callable
        with pytest.raises(CorruptFileError) as caught:
            check_file(storage, "file", len(self.content), checksum(self.content))
        assert caught.value.path == f"{tmp_path}/file"

    def test_a_missing_file_is_damage(self, tmp_path: Path) -> None:
        with pytest.raises(CorruptFileError, match="missing"):
            check_file(LocalStorage(str(tmp_path)), "file", 3, checksum(b"abc"))
