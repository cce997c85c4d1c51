"""Which files there are."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.connectors.file_access import modified_ms_of
from holdfast.errors import ConfigurationError, StorageError
from holdfast.storage.filesystem import Storage


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file of a listing; ``path`` is its full location."""

    path: str
    size: int
    modified_ms: int


class FileTree:
    """The files below some paths, each a directory or a single file. Names that begin with ``_`` or ``.`` are not
    part of it, and neither is what lies in directories of such names: that is where writers keep what is not
    complete. Picklable.
    """

    def __init__(self, paths: Sequence[str], recursive: bool = True, pattern: str | None = None) -> None:
        self._roots = [Storage.for_uri(path) for path in paths]
        self._recursive = recursive
        self._pattern = None if pattern is None else _compiled(pattern)
        self._match_names = pattern is not None and "/" not in pattern

    def files(self) -> Iterator[FoundFile]:
        """Everything that is there now; StorageError when one of the paths does not exist."""
        for root in self._roots:
            if not root.exists(""):
                raise StorageError(
                    f"The source's path {root.uri} does not exist. Create it before the job starts, or correct the "
                    "path."
                )
            size = _size_of_file(root)
            if size is not None:
                if self._is_wanted(root.uri.rpartition("/")[2]):
                    yield FoundFile(root.uri, size, modified_ms_of(root))
                continue
            for entry in root.list("", recursive=self._recursive):
                if not entry.is_dir and not _hidden(entry.path) and self._is_wanted(entry.path):
                    yield FoundFile(_readable(root.location(entry.path)), entry.size, entry.modified_ms)

    def locate(self, path: str) -> tuple[Storage, str]:
        """Storage and path in it of a full location, also of one below paths that the program no longer names."""
        for root in self._roots:
            inside = _inside(root, path)
            if inside is not None:
                return root, inside
        folder, _, name = path.rpartition("/")
        return Storage.for_uri(folder or "/"), name

    def _is_wanted(self, relative: str) -> bool:
        if self._pattern is None:
            return True
        tested = relative.rpartition("/")[2] if self._match_names else relative
        return self._pattern.fullmatch(tested) is not None


def _readable(path: str) -> str:
    """The path itself, which positions must be able to hold."""
    if not path.isascii():
        try:
            path.encode()
        except UnicodeEncodeError:
            raise StorageError(
                f"The name of the file {os.fsencode(path)!r} is not valid UTF-8; rename it, or keep it out of the "
                "source's directory."
            ) from None
    return path


def _inside(root: Storage, path: str) -> str | None:
    """The path relative to a root, empty for the root itself; None when it lies elsewhere."""
    if path == root.uri:
        return ""
    prefix = f"{root.uri.rstrip('/')}/"
    return path.removeprefix(prefix) if path.startswith(prefix) else None


def _size_of_file(root: Storage) -> int | None:
    """The size of the root itself where it is a file."""
    try:
        with root.open_input("") as stream:
            return stream.seek(0, os.SEEK_END)
    except StorageError as error:
        # A directory cannot be opened, and in an object store its name alone is no object. Not every storage says so.
        if isinstance(error.__cause__, (IsADirectoryError, FileNotFoundError)) or root.list(""):
            return None
        raise


def _hidden(path: str) -> bool:
    return any(part.startswith(("_", ".")) for part in path.split("/"))


_TOKENS = re.compile(r"\*\*/|\*\*|\*|\?|\[[!^]?\]?[^\]]*\]|\{[^{}]*\}|.", re.DOTALL)


def _compiled(pattern: str) -> re.Pattern[str]:
    """A glob as a regular expression: ``*`` and ``?`` stay within a name, ``**`` does not; ``[a-z]``, ``{a,b}``."""
    if not pattern or pattern.startswith("/"):
        raise ConfigurationError(
            f"The glob pattern is {pattern!r}; expected is one relative to the source's path, as '*.json' or "
            "'2024-*/part-*'."
        )
    return re.compile("".join(map(_translated, _TOKENS.findall(pattern))))


def _translated(token: str) -> str:
    plain = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    if token in plain:
        return plain[token]
    if len(token) > 1 and token[0] == "[":
        inverted = token[1] in "!^"
        return f"[{'^' if inverted else ''}{re.escape(token[1 + inverted : -1]).replace(chr(92) + '-', '-')}]"
    if len(token) > 1 and token[0] == "{":
        return f"(?:{'|'.join(map(re.escape, token[1:-1].split(',')))})"
    return re.escape(token)
