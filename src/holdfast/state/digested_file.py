"""Small files of local stores with a digest of what they hold, which is looked at whenever they are read."""

from __future__ import annotations

import xxhash

from holdfast.errors import StoreDamagedError

_DIGEST_BYTES = 8


def with_digest(data: bytes) -> bytes:
    return data + xxhash.xxh3_64_digest(data)


def without_digest(stored: bytes, where: object) -> bytes:
    """What was given to ``with_digest``. StoreDamagedError, which names ``where``, when it is something else now."""
    data, digest = stored[:-_DIGEST_BYTES], stored[-_DIGEST_BYTES:]
    if len(stored) < _DIGEST_BYTES or xxhash.xxh3_64_digest(data) != digest:
        raise StoreDamagedError(f"{where} is damaged: it does not hold the {len(data)} bytes that were written.")
    return data
