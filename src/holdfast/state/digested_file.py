"""Small files of local stores with a digest of their name and content, which is looked at whenever they are read.

One in the place of another is damage too.
"""

from __future__ import annotations

import xxhash

from holdfast.errors import StoreDamagedError

_DIGEST_BYTES = 8


def with_digest(data: bytes, name: str = "") -> bytes:
    return data + _digest(data, name)


def without_digest(stored: bytes, where: object, name: str = "") -> bytes:
    """What was given to ``with_digest``. StoreDamagedError, which names ``where``, when it is something else now."""
    data, digest = stored[:-_DIGEST_BYTES], stored[-_DIGEST_BYTES:]
    if len(stored) < _DIGEST_BYTES or _digest(data, name) != digest:
        raise StoreDamagedError(f"{where} is damaged: it does not hold the {len(data)} bytes that were written.")
    return data


def _digest(data: bytes, name: str) -> bytes:
    digest = xxhash.xxh3_64(name.encode())
    digest.update(data)
    return digest.digest()
