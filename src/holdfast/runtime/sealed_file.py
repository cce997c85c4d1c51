"""Files that only an attempt itself can have written: the key of what they hold travels with the job's plan."""

from __future__ import annotations

import hmac
import os
from pathlib import Path

from holdfast.storage.private_files import write_private

_MAGIC = b"HFMEM\x01"
_DIGEST = "sha256"
_SEAL_BYTES = 32


class SealedFiles:
    """Writes and reads files with a seal (HMAC-SHA256) over their content and ``purpose``, which is what they are for:
    a file that was moved, or left by another attempt, is none of these.
    """

    def __init__(self, secret: bytes, purpose: str) -> None:
        self._secret = secret
        self._purpose = purpose

    def write(self, path: Path, name: str, data: bytes) -> None:
        """Under a temporary name until it is whole; ``name`` is the version that it holds."""
        temporary = path.with_suffix(".tmp")
        write_private(temporary, _MAGIC + self._seal(name, data) + data)
        os.replace(temporary, path)

    def read(self, path: Path, name: str) -> bytes | None:
        """What was written; None when something else wrote the file, or changed it. FileNotFoundError without one."""
        content = path.read_bytes()
        start = len(_MAGIC) + _SEAL_BYTES
        seal, data = content[len(_MAGIC) : start], content[start:]
        whole = content.startswith(_MAGIC) and hmac.compare_digest(seal, self._seal(name, data))
        return data if whole else None

    def _seal(self, name: str, data: bytes) -> bytes:
        key = hmac.digest(self._secret, f"{self._purpose}/{name}".encode(), _DIGEST)
        return hmac.digest(key, data, _DIGEST)
