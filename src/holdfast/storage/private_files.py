"""Directories and files of a host that belong to the user of this process alone."""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

from holdfast.errors import UnfitExecutorError

#: The rights of a private directory, and of a private file.
DIRECTORY_MODE, FILE_MODE = 0o700, 0o600
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def make_private_directory(path: Path, setting: str) -> None:
    """Make the directory, for this user alone, unless it is there. UnfitExecutorError when it is there and somebody
    else made it, or can write to it; so, too, for a link of somebody else's. ``setting`` is what names the directory.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir(mode=DIRECTORY_MODE)
    except FileExistsError:
        refusal = why_not_private(path)
        if refusal is not None:
            raise UnfitExecutorError(
                f"The directory {path} cannot hold state: {refusal}. Expected is a directory that user "
                f"{_user(os.geteuid())} has made and nobody else can write to: what lies there becomes the state of "
                f"jobs. Remove it, or give '{setting}' the path of another one; one that does not exist yet is made "
                "with the rights that it needs."
            ) from None


def why_not_private(path: Path) -> str | None:
    """What is wrong with a directory that is there; None when only this user can change what is in it."""
    link = os.lstat(path)
    if stat.S_ISLNK(link.st_mode) and link.st_uid != os.geteuid():
        return f"it is a link that belongs to user {_user(link.st_uid)}"
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return "it is a link to nowhere"
    if not stat.S_ISDIR(found.st_mode):
        return "it is no directory"
    if found.st_uid != os.geteuid():
        return f"it belongs to user {_user(found.st_uid)}"
    if found.st_mode & _OTHERS_WRITE:
        return f"its rights are {stat.S_IMODE(found.st_mode):o}, so that other users can write to it"
    return None


def write_private(path: Path, data: bytes) -> None:
    """Make a file that only this user can read, or write one anew that is."""
    with open(path, "wb", opener=private_opener) as file:
        file.write(data)


def private_opener(path: str, flags: int) -> int:
    """For ``open``: a file that it makes can be read by this user alone."""
    return os.open(path, flags, FILE_MODE)


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
