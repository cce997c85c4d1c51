"""The ``_metadata`` file: one header line, then the checkpoint's metadata as JSON.

``holdfast-metadata <version> <checksum> <length>\\n<body>``: the checksum is the xxh3_128 of ``<version>\\n<body>`` in
hexadecimal and the length is that of the body. It covers the version so that a damaged version is not taken for a newer
format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import msgspec

from holdfast.errors import CorruptFileError, RestoreError
from holdfast.state.handles import CheckpointMetadata
from holdfast.storage.checksum import checksum

CURRENT_VERSION = 1
_HEADER = re.compile(rb"holdfast-metadata ([1-9][0-9]{0,8}) ([0-9a-f]{32}) (0|[1-9][0-9]{0,18})\n")
_LONGEST_HEADER = 128


def _read_version_1(body: bytes) -> CheckpointMetadata:
    return msgspec.json.decode(body, type=CheckpointMetadata)


#: One reader per version that was ever written.
_READERS: Mapping[int, Callable[[bytes], CheckpointMetadata]] = {1: _read_version_1}


def encode_metadata(metadata: CheckpointMetadata, indent: int | None = None) -> bytes:
    """The stored form of metadata; with an ``indent`` it has lines, for people to read."""
    body = msgspec.json.encode(metadata)
    if indent is not None:
        body = msgspec.json.format(body, indent=indent)
    header = f"holdfast-metadata {CURRENT_VERSION} {_digest(CURRENT_VERSION, body)} {len(body)}\n"
    return header.encode() + body


def decode_metadata(data: bytes, location: str) -> CheckpointMetadata:
    """CorruptFileError, with ``location`` as its path, for anything but the bytes that were written."""
    match = _HEADER.match(data[:_LONGEST_HEADER])
    if match is None:
        raise CorruptFileError(location, "the header is damaged, or this is not the metadata of a Holdfast checkpoint")
    version, expected, length = int(match[1]), match[2].decode(), int(match[3])
    body = data[match.end() :]
    if len(body) != length:
        raise CorruptFileError(location, f"{len(body)} bytes follow the header, {length} were written")
    found = _digest(version, body)
    if found != expected:
        raise CorruptFileError(location, f"the checksum of the content is {found}, {expected} was written")
    reader = _READERS.get(version)
    if reader is None:
        raise RestoreError(
            f"{location} has format version {version}; this version of Holdfast reads {sorted(_READERS)}. "
            "Use the version of Holdfast that wrote it, or a newer one."
        )
    try:
        return reader(body)
    except msgspec.MsgspecError as cause:
        raise CorruptFileError(location, f"the content is not that of format version {version} ({cause})") from cause


def _digest(version: int, body: bytes) -> str:
    return checksum(f"{version}\n".encode(), body)
