"""A digest of all entries of a store that follows every change, at the cost of what changes.

The digest is a sum of numbers of 64 bits, one for each key and one for each value. So it does not depend on the order
of entries, and a value that changes subtracts one number and adds another. Which value is which key's is not in it:
damage does not exchange values. It tells damage, and no forgery.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xxhash import xxh3_64_intdigest

_MASK = (1 << 64) - 1
#: Odd, so that a key does not weigh what the same bytes weigh as a value.
_KEYS = 0x9E3779B97F4A7C15

NOTHING = 0


def with_entries(digest: int, keys: Iterable[bytes], values: Iterable[bytes]) -> int:
    """The digest when these entries are added."""
    return (digest + _KEYS * _sum(keys) + _sum(values)) & _MASK


def without_entries(digest: int, keys: Iterable[bytes], values: Iterable[bytes]) -> int:
    """The digest when these entries are removed."""
    return (digest - _KEYS * _sum(keys) - _sum(values)) & _MASK


def with_change(
    digest: int, keys: Sequence[bytes], after: Sequence[bytes | None], before: Sequence[bytes | None]
) -> int:
    """The digest when the values of keys change; None is no entry."""
    if all(after) and all(before):
        return (digest + _sum(after) - _sum(before)) & _MASK  # type: ignore[arg-type]  # none is None
    return without_entries(with_entries(digest, *_there(keys, after)), *_there(keys, before))


def _sum(items: Iterable[bytes]) -> int:
    return sum(map(xxh3_64_intdigest, items))


def _there(keys: Sequence[bytes], values: Sequence[bytes | None]) -> tuple[list[bytes], list[bytes]]:
    entries = [(key, value) for key, value in zip(keys, values, strict=True) if value is not None]
    return [key for key, _ in entries], [value for _, value in entries]
