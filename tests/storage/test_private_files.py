"""Directories and files of one user."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.errors import UnfitExecutorError
from holdfast.storage.private_files import make_private_directory, write_private

SETTING = "holdfast.state.local-dir"


@pytest.fixture(autouse=True)
def no_umask() -> Iterator[None]:
    """Nothing is private by itself."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_is_made_is_for_its_user_alone(tmp_path: Path) -> None:
    for _ in range(2):
        make_private_directory(tmp_path / "a" / "b", SETTING)
        write_private(tmp_path / "a" / "b" / "file", b"state")

    assert mode_of(tmp_path / "a" / "b") == 0o700
    assert mode_of(tmp_path / "a" / "b" / "file") == 0o600
    assert (tmp_path / "a" / "b" / "file").read_bytes() == b"state"


def test_a_directory_that_others_can_only_read_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    for name in ("mine", "link"):
        make_private_directory(tmp_path / name, SETTING)

    assert mode_of(tmp_path / "mine") == 0o755


def of_mode(mode: int) -> Callable[[Path], None]:
    return lambda path: path.mkdir(mode=mode)


def link_to_shared(path: Path) -> None:
    path.with_name("shared").mkdir(mode=0o777)
    path.symlink_to(path.with_name("shared"))


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (of_mode(0o770), "its rights are 770, so that other users can write to it"),
        (of_mode(0o702), "its rights are 702, so that other users can write to it"),
        (of_mode(0o1777), "its rights are 1777, so that other users can write to it"),
        (link_to_shared, "its rights are 777, so that other users can write to it"),
        (lambda path: path.write_text(""), "it is no directory"),
        (lambda path: path.symlink_to("nowhere"), "it is a link to nowhere"),
    ],
)
def test_a_directory_that_others_can_write_to_is_refused(
    tmp_path: Path, make: Callable[[Path], None], problem: str
) -> None:
    make(tmp_path / "local")

    with pytest.raises(UnfitExecutorError, match=f"local cannot hold state: {problem}.*Remove it, or give '{SETTING}'"):
        make_private_directory(tmp_path / "local", SETTING)


@pytest.mark.parametrize("linked", [False, True])
def test_a_directory_that_somebody_else_made_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linked: bool
) -> None:
    (tmp_path / "theirs").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "theirs")
    # From the point of view of another user.
    another = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: another)

    problem = "it is a link that belongs to" if linked else "it belongs to"
    with pytest.raises(UnfitExecutorError, match=f"{problem} user .*Expected is a directory that user"):
        make_private_directory(tmp_path / ("link" if linked else "theirs"), SETTING)
