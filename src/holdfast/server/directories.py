"""Which directories a request may name. Pure but for the resolution of symbolic links."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable
from urllib.parse import SplitResult, unquote, urlsplit

from holdfast.errors import HoldfastError

_LOCAL = ("", "file")


class ForbiddenDirectoryError(HoldfastError):
    """A request names a place that is in none of the configured directories."""


def resolve_inside(named: str, allowed: Iterable[str]) -> str:
    """``named`` with all links resolved, if that is one of the allowed directories or below one of them."""
    roots = list(allowed)
    parts = _checked(named)
    resolved = _resolved(parts)
    local = parts.scheme in _LOCAL
    candidates = [urlsplit(root) for root in roots]
    if not any(_is_below(resolved, _resolved(root)) for root in candidates if (root.scheme in _LOCAL) is local):
        known = ", ".join(f"'{root}'" for root in roots) or "none"
        raise ForbiddenDirectoryError(
            f"'{named}' is in none of the directories that requests may name ({known}). Choose one of them, or add the "
            "directory to 'holdfast.rest.allowed-directories' of the job"
        )
    return resolved


def _checked(named: str) -> SplitResult:
    text = unquote(unquote(named))
    if "\x00" in text or ".." in text.replace("\\", "/").split("/"):
        raise ForbiddenDirectoryError(f"{named!r} has a part '..' or a null byte; expected an absolute path or URI")
    try:
        parts = urlsplit(named)
    except ValueError:
        raise ForbiddenDirectoryError(f"{named!r} is not a path or URI") from None
    if parts.scheme in _LOCAL and not parts.path.startswith("/"):
        raise ForbiddenDirectoryError(f"'{named}' is not absolute; expected a path that begins with '/', or a URI")
    return parts


def _resolved(parts: SplitResult) -> str:
    """A local path without links, or a URI in a plain form."""
    if parts.scheme == "file":
        return os.path.realpath(unquote(parts.path))
    if not parts.scheme:
        # Nothing is decoded in a path, and '?' or '#' are parts of names.
        return os.path.realpath(parts.geturl())
    path = posixpath.normpath("/" + unquote(parts.path).lstrip("/"))
    return f"{parts.scheme}://{parts.netloc}{path}"


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")
