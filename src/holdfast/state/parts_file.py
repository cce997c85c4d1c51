"""The file format of operator state and of raw state: parts of any size, each of which can be read on its own.

``block* footer trailer``. A part is what one element, one partition or one key group wrote; parts follow each other in
blocks of about 64 KB, a larger part being a block of its own. The footer (msgpack) holds what the writer says about
the parts, their lengths, and the xxh3_128 digest of every block; the trailer holds the footer's length and digest, and
the format's magic and version. So every byte that is used is verified, and blocks without a wanted part are never read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, Self

import msgspec
import xxhash

from holdfast.state.footed_file import WHOLE_FILE_BYTES, FileFormat, FootedFile
from holdfast.state.handles import FileHandle
from holdfast.state.snapshot_io import SnapshotReader

BLOCK_BYTES = 64 << 10
_FORMAT = FileFormat(b"HFPARTS", 1, "operator state")


class _Block(msgspec.Struct, array_like=True, frozen=True):
    """Parts from ``first_part`` up to that of the next block."""

    first_part: int
    length: int
    digest: bytes


class _Footer(msgspec.Struct, array_like=True, frozen=True):
    info: msgspec.Raw
    lengths: list[int]
    blocks: list[_Block]


_footer_decoder = msgspec.msgpack.Decoder(_Footer)


def encode_parts_file(info: Any, parts: Sequence[bytes]) -> bytes:
    """A file of ``parts``. ``info`` says what they are; anything that msgspec encodes."""
    blocks: list[_Block] = []
    pieces: list[bytes] = []
    for first, last in _cuts(parts):
        data = b"".join(parts[first:last])
        blocks.append(_Block(first, len(data), xxhash.xxh3_128_digest(data)))
        pieces.append(data)
    encoded = msgspec.Raw(msgspec.msgpack.encode(info))
    footer = msgspec.msgpack.encode(_Footer(encoded, [len(part) for part in parts], blocks))
    return b"".join((*pieces, _FORMAT.ending(footer)))


def _cuts(parts: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    first = size = 0
    for number, part in enumerate(parts):
        if size and size + len(part) > BLOCK_BYTES:
            yield first, number
            first, size = number, 0
        size += len(part)
    if first < len(parts):
        yield first, len(parts)


class PartsFileReader:
    """Reads one file, only the parts that are asked for.

    Made, it has read the footer. It is to be closed; nothing can be read from it then.
    """

    def __init__(self, handle: FileHandle, reader: SnapshotReader) -> None:
        whole = handle.inline is not None or handle.size <= WHOLE_FILE_BYTES
        self._name = handle.path or "operator state"
        self._file: FootedFile | None = FootedFile(handle, reader, _FORMAT, whole)
        footer = _footer_decoder.decode(self._file.footer)
        self._info = footer.info
        self.lengths: list[int] = footer.lengths
        self._blocks = footer.blocks
        self._block_starts = [block.first_part for block in footer.blocks]
        self._offsets = [0, *accumulate(block.length for block in footer.blocks)]

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def closed(self) -> bool:
        return self._file is None

    def info(self, kind: Any) -> Any:
        """What the writer said about the parts, as ``kind``."""
        try:
            return msgspec.msgpack.decode(self._info, type=kind)
        except msgspec.MsgspecError as error:
            raise self._open().corrupt(f"it does not say about its parts what was expected: {error}") from error

    def read(self, parts: Sequence[int]) -> list[bytes]:
        """The parts of these numbers, in the order in which they are asked for."""
        found: dict[int, bytes] = {}
        wanted = sorted(set(parts))
        for first, last in _runs(sorted({self._block_of(part) for part in wanted})):
            data = self._open().read(self._offsets[first], self._offsets[last + 1] - self._offsets[first])
            self._take(first, last, data, found)
        return [found[part] for part in parts]

    def close(self) -> None:
        self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _block_of(self, part: int) -> int:
        return bisect_right(self._block_starts, part) - 1

    def _take(self, first: int, last: int, data: bytes, found: dict[int, bytes]) -> None:
        """Verify the blocks from ``first`` to ``last`` and cut them into their parts."""
        position = 0
        for number in range(first, last + 1):
            block = self._blocks[number]
            end = position + block.length
            self._open().verify(data[position:end], self._offsets[number], block.digest)
            next_block = self._block_starts[number + 1] if number + 1 < len(self._blocks) else len(self.lengths)
            for part in range(block.first_part, next_block):
                found[part] = data[position : position + self.lengths[part]]
                position += self.lengths[part]

    def _open(self) -> FootedFile:
        if self._file is None:
            raise ValueError(f"{self._name} is closed: what it holds can be read during a restore only")
        return self._file


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Neighbours, which are read together, as (first, last)."""
    first = last = -2
    for number in numbers:
        if number != last + 1:
            if first >= 0:
                yield first, last
            first = number
        last = number
    if first >= 0:
        yield first, last
