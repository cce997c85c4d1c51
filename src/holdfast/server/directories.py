"""Which directories a request may name. Pure but for the resolution of symbolic links."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable
from urllib.parse import unquote, urlsplit

from holdfast.errors import HoldfastError


class ForbiddenDirectoryError(HoldfastError):
    """A request names a place that is in none of the configured directories."""


def resolve_inside(named: str, allowed: Iterable[str]) -> str:
    """``named`` with all links resolved, if that is one of the allowed directories or below one of them."""
    roots = list(allowed)
    _check_form(named)
    scheme = urlsplit(named).scheme
    if scheme in ("", "file"):
        resolved = os.path.realpath(_local(named))
        inside = any(_is_below(resolved, os.path.realpath(_local(root))) for root in roots if _is_local(root))
    else:
        resolved = _plain_uri(named)
        inside = any(_is_below(resolved, _plain_uri(root)) for root in roots if not _is_local(root))
    if not inside:
        known = ", ".join(f"'{root}'" for root in roots) or "none"
        raise ForbiddenDirectoryError(
            f"'{named}' is in none of the directories that requests may name ({known}). Choose one of them, or add the "
            "directory to 'holdfast.rest.allowed-directories' of the job"
        )
    return resolved


def _check_form(named: str) -> None:
    text = unquote(unquote(named))
    if "\x00" in text or ".." in text.replace("\\", "/").split("/"):
        raise ForbiddenDirectoryError(f"{named!r} has a part '..' or a null byte; expected a plain absolute path or URI")
    if urlsplit(named).scheme in ("", "file") and not _local(named).startswith("/"):
        raise ForbiddenDirectoryError(f"'{named}' is not absolute; expected a path that begins with '/', or a URI")


def _is_local(directory: str) -> bool:
    return urlsplit(directory).scheme in ("", "file")


def _local(directory: str) -> str:
    return unquote(urlsplit(directory).path) if urlsplit(directory).scheme == "file" else directory


def _plain_uri(uri: str) -> str:
    parts = urlsplit(uri)
    path = posixpath.normpath(unquote(parts.path) or "/")
    return f"{parts.scheme}://{parts.netloc}{path if path.startswith('/') else '/' + path}"


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")
