"""The token that a request must bring, in a file that only its owner can read."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from holdfast.errors import ConfigurationError

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def obtain_token(path: Path) -> str:
    """The token in the file; a new one where there is no file yet. Processes that start together get the same one."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not path.exists():
        _create(path)
    return read_token(path)


def read_token(path: Path) -> str:
    try:
        status = path.stat()
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"The token file {path} cannot be read: {error}") from error
    if status.st_uid != os.getuid():
        raise ConfigurationError(f"The token file {path} belongs to another user; expected one of this user's own")
    if status.st_mode & _OTHERS:
        raise ConfigurationError(
            f"The token file {path} has mode {stat.S_IMODE(status.st_mode):04o}: others than its owner may use it; "
            "expected 0600. Remove it, so that a new token is made, or 'chmod 600' it if nobody has read it"
        )
    if not token:
        raise ConfigurationError(f"The token file {path} is empty; remove it, and a new token is made")
    return token


def _create(path: Path) -> None:
    """Written under another name and linked, so that nobody sees an empty file."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(secrets.token_urlsafe(32) + "\n")
        os.link(draft, path)
    except FileExistsError:
        return
    finally:
        draft.unlink()
