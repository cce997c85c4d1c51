"""Temporary files of this process: a folder that goes with it. What a process left that was killed, a later one
removes.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import IO

_LOCK = "lock"


def run_folder() -> Path:
    """The folder of this process, below that for temporary files, for its user alone. Its name is short: a socket in it
    must have one of at most about a hundred bytes.
    """
    return _run_folder(os.getpid(), tempfile.gettempdir())


# A forked process, as a worker is, has one of its own.
@lru_cache(maxsize=8)
def _run_folder(process: int, temporary: str) -> Path:
    parent = Path(temporary, f"holdfast-run-{os.getuid()}")
    with suppress(FileExistsError):
        parent.mkdir(mode=0o700)
    if not _is_ours(parent):
        # Somebody else has made a folder of this name: nothing is put there.
        parent = Path(tempfile.mkdtemp(prefix="holdfast-run-"))
    with _alone_in(parent):
        for other in parent.iterdir():
            _remove_if_left(other)
        own = parent / secrets.token_hex(4)
        own.mkdir(mode=0o700)
        lock = (own / _LOCK).open("wb")
        # The kernel frees it when the process ends, in whatever way.
        fcntl.flock(lock, fcntl.LOCK_EX)
    atexit.register(_remove, own, lock, process)
    return own


@contextmanager
def _alone_in(parent: Path) -> Iterator[None]:
    """No other process makes or removes folders there meanwhile: one that is just being made has no lock yet."""
    folder = os.open(parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _is_ours(folder: Path) -> bool:
    status = folder.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077


def _remove_if_left(folder: Path) -> None:
    """Unless its process lives. One without a lock was killed before it had one."""
    try:
        lock = (folder / _LOCK).open("rb")
    except FileNotFoundError:
        shutil.rmtree(folder, ignore_errors=True)
        return
    with lock, suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)


def _remove(folder: Path, lock: IO[bytes], process: int) -> None:
    # A forked process that ends is not the one that the folder is of.
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
        lock.close()
