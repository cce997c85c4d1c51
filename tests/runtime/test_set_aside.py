"""What goes past a query comes back as it was, or not at all."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from holdfast.errors import EpochError
from holdfast.runtime.envelope import Envelope
from holdfast.runtime.set_aside import SetAside, read_set_aside

SECRET = b"s" * 32
ENVELOPES = [
    (0, -3, 0, 0, 0, 0, b"failure"),
    (1, 7, 2, 3, (1 << 20) + 4, 5, b""),
    (1, 7, 2, 4, (1 << 20) + 4, 6, bytes(range(256)) * 9000),
]


def write(path: Path, secret: bytes = SECRET) -> None:
    with SetAside(path, secret) as aside:
        for fields in ENVELOPES:
            aside.add(Envelope(*fields))


def fields(envelope: Envelope) -> tuple[int, int, int, int, int, int, bytes]:
    e = envelope
    return e.slot, e.edge, e.channel, e.number, e.sender, e.sequence, bytes(e.payload)


def test_envelopes_come_back_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "aside"
    write(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [fields(envelope) for envelope in read_set_aside(path, SECRET)] == ENVELOPES
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_set_aside(tmp_path: Path) -> None:
    with SetAside(tmp_path / "aside", SECRET):
        pass
    assert list(read_set_aside(tmp_path / "aside", SECRET)) == []


@pytest.mark.parametrize("place", [0, 100, -1])
def test_a_changed_file_is_refused_before_anything_of_it_is_used(tmp_path: Path, place: int) -> None:
    path = tmp_path / "aside"
    write(path)
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(EpochError, match="damaged"):
        next(read_set_aside(path, SECRET))


@pytest.mark.parametrize("length", [0, 10, 200])
def test_a_shortened_file_is_refused(tmp_path: Path, length: int) -> None:
    path = tmp_path / "aside"
    write(path)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(EpochError, match="damaged"):
        next(read_set_aside(path, SECRET))


def test_a_file_of_another_attempt_or_task_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "other", b"o" * 32)
    with pytest.raises(EpochError, match="damaged"):
        next(read_set_aside(tmp_path / "other", SECRET))
    write(tmp_path / "one")
    (tmp_path / "one").rename(tmp_path / "another")
    with pytest.raises(EpochError, match="damaged"):
        next(read_set_aside(tmp_path / "another", SECRET))


def test_a_function_that_fails_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="in the middle"), SetAside(tmp_path / "aside", SECRET) as aside:
        aside.add(Envelope(*ENVELOPES[0]))
        raise ValueError("in the middle")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(EpochError, match="not there"):
        next(read_set_aside(tmp_path / "aside", SECRET))
