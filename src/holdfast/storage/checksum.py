"""Checksums of stored bytes: xxh3_128, in hexadecimal."""

from __future__ import annotations

import xxhash

from holdfast.errors import CorruptFileError, StorageError
from holdfast.storage.filesystem import Storage, is_missing

_CHUNK = 1 << 20


def checksum(*parts: bytes | memoryview) -> str:
    """The checksum of the parts as one sequence of bytes."""
    digest = xxhash.xxh3_128()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def check_content(location: str, data: bytes, size: int, expected: str) -> None:
    """CorruptFileError unless the bytes are those that size and checksum were taken of."""
    _compare(location, len(data), size, checksum(data), expected)


def check_file(storage: Storage, path: str, size: int, expected: str) -> None:
    """Read a file in pieces and raise CorruptFileError unless size and checksum agree; so, too, when it is missing."""
    digest = xxhash.xxh3_128()
    seen = 0
    try:
        with storage.open_input(path) as stream:
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
                seen += len(chunk)
    except StorageError as error:
        if is_missing(error):
            raise CorruptFileError(storage.location(path), f"the file is missing; {size} bytes are expected") from error
        raise
    _compare(storage.location(path), seen, size, digest.hexdigest(), expected)


def _compare(location: str, size: int, expected_size: int, found: str, expected: str) -> None:
    if size != expected_size:
        raise CorruptFileError(location, f"the file has {size} bytes, {expected_size} were written")
    if found != expected:
        raise CorruptFileError(location, f"the checksum of the content is {found}, {expected} was written")
