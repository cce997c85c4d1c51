"""What may happen to a file, and which file it happens to."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

Damage = Callable[[bytes, bytes, random.Random], bytes | None]


def _flipped(content: bytes, other: bytes, chosen: random.Random) -> bytes:
    changed = bytearray(content)
    if changed:
        changed[chosen.randrange(len(changed))] ^= 1 << chosen.randrange(8)
    return bytes(changed)


def _zeroed(content: bytes, other: bytes, chosen: random.Random) -> bytes:
    """A page that never got to the disk."""
    begin = chosen.randrange(max(1, len(content)))
    end = min(len(content), begin + chosen.choice((16, 512, 4096)))
    return content[:begin] + bytes(end - begin) + content[end:]


#: The file's content, that of another file of its kind, and what is left: None where the file is gone.
DAMAGES: dict[str, Damage] = {
    "a flipped bit": _flipped,
    "zeroes": _zeroed,
    "cut off": lambda content, other, chosen: content[: chosen.randrange(max(1, len(content)))],
    "emptied": lambda content, other, chosen: b"",
    "deleted": lambda content, other, chosen: None,
    "garbage": lambda content, other, chosen: chosen.randbytes(max(1, len(content))),
    "more behind it": lambda content, other, chosen: content + chosen.randbytes(chosen.choice((1, 64, 4096))),
    "another file's content": lambda content, other, chosen: other,
}


class Damaged:
    """A file as something left it, and as it was."""

    def __init__(self, path: Path, how: str, same_kind: Sequence[Path], chosen: random.Random) -> None:
        self.path = path
        self.how = how
        self._content = path.read_bytes()
        others = [other for other in same_kind if other != path] or [path]
        left = DAMAGES[how](self._content, chosen.choice(others).read_bytes(), chosen)
        if left is None:
            path.unlink()
        else:
            path.write_bytes(left)

    def mend(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(self._content)


def kind_of(path: Path, root: Path) -> str:
    """The place of a file, without what is different in every run."""
    parts = path.relative_to(root).parts
    return "/".join(re.sub(r"[0-9a-f]{6,}|[0-9]+", "#", part) for part in parts)


def by_kind(files: Sequence[Path], root: Path) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path in sorted(files):
        found.setdefault(kind_of(path, root), []).append(path)
    return found
