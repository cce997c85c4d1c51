"""The file format of keyed snapshots: sorted entries in blocks, indexed by key group.

``block* footer trailer``. A block is a zstd-compressed Arrow record batch of (key, value), in key order; a null
value is a tombstone. It has about 64 KB before compression and holds whole key groups where these are small. The
footer (msgpack) lists range tombstones and, per block, its key groups, place and xxh3_128 digest; the trailer holds
the footer's length and digest, and the format's magic and version. So every byte that is used is verified, and
blocks that a reader does not need are never read.

One image or delta may take several files, none much above ``PART_BYTES``: each part goes on in key order where the
one before ended. Range tombstones are in the first part and apply to the files before it only.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence

import msgspec
import pyarrow as pa
import xxhash

from holdfast.errors import CorruptFileError
from holdfast.state.handles import KeyedFile
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.layout import read_group
from holdfast.state.snapshot_io import SnapshotReader

Entry = tuple[bytes, bytes | None]
KeyRange = tuple[bytes, bytes]

BLOCK_BYTES = 64 << 10
#: A file is closed when it has this many bytes.
PART_BYTES = 64 << 20
#: Files up to this size are read at once when all of them is wanted.
_WHOLE_FILE_BYTES = 256 << 10
#: Where the length of the footer is not known, so many bytes of the file's end are read first.
_TAIL_BYTES = 64 << 10
#: Neighbouring blocks are read together, up to this many bytes.
_READ_BYTES = 4 << 20
#: Rough bytes that an entry costs beside its key and value.
_ENTRY_OVERHEAD = 8

_MAGIC = b"HFKEYED"
_VERSION = 1
_TRAILER = struct.Struct(">Q16s7sB")
_CODEC = "zstd"
_SCHEMA = pa.schema([("key", pa.binary()), ("value", pa.binary())])


class _Block(msgspec.Struct, array_like=True, frozen=True):
    first_group: int
    last_group: int
    offset: int
    length: int
    raw_length: int
    digest: bytes


class _Footer(msgspec.Struct, array_like=True, frozen=True):
    entries: int
    ranges: list[KeyRange]
    blocks: list[_Block]


_footer_decoder = msgspec.msgpack.Decoder(_Footer)


class EncodedPart(msgspec.Struct, frozen=True):
    """One file, ready to be stored."""

    data: bytes
    first_key_group: int
    last_key_group: int
    entries: int
    #: Its last bytes that say where everything is.
    index_bytes: int = 0


def encode_parts(
    entries: Iterable[Entry], ranges: Sequence[KeyRange], key_groups: KeyGroupRange, part_bytes: int = PART_BYTES
) -> Iterator[EncodedPart]:
    """Files of ``entries``, which are sorted and unique: one at least, and each as soon as it is full.

    A part without entries spans all of ``key_groups``, as do range tombstones.
    """
    writer = _Writer(ranges, key_groups)
    for block in _blocks(entries):
        if writer.size >= part_bytes:
            yield writer.finish()
            writer = _Writer((), key_groups)
        writer.add(block)
    yield writer.finish()


class _Writer:
    """Collects the blocks of one file."""

    def __init__(self, ranges: Sequence[KeyRange], key_groups: KeyGroupRange) -> None:
        self._ranges = list(ranges)
        self._key_groups = key_groups
        self._pieces: list[bytes] = []
        self._index: list[_Block] = []
        self._entries = 0
        self.size = 0

    def add(self, block: list[Entry]) -> None:
        keys, values = zip(*block, strict=True)
        columns = [pa.array(keys, pa.binary()), pa.array(values, pa.binary())]
        raw = pa.record_batch(columns, schema=_SCHEMA).serialize()
        data: bytes = pa.compress(raw, codec=_CODEC, asbytes=True)
        place = _Block(
            read_group(keys[0]), read_group(keys[-1]), self.size, len(data), raw.size, xxhash.xxh3_128_digest(data)
        )
        self._index.append(place)
        self._pieces.append(data)
        self._entries += len(block)
        self.size += len(data)

    def finish(self) -> EncodedPart:
        footer = msgspec.msgpack.encode(_Footer(self._entries, self._ranges, self._index))
        trailer = _TRAILER.pack(len(footer), xxhash.xxh3_128_digest(footer), _MAGIC, _VERSION)
        spans_all = bool(self._ranges) or not self._index
        first = self._key_groups.start if spans_all else self._index[0].first_group
        last = self._key_groups.end if spans_all else self._index[-1].last_group
        data = b"".join((*self._pieces, footer, trailer))
        return EncodedPart(data, first, last, self._entries, len(footer) + len(trailer))


def _blocks(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """Cut at a change of the key group once a block is half full, and anywhere once it is full."""
    block: list[Entry] = []
    size = 0
    group = b""
    for entry in entries:
        key, value = entry
        if size >= BLOCK_BYTES or (size * 2 >= BLOCK_BYTES and key[:2] != group):
            yield block
            block, size = [], 0
        group = key[:2]
        block.append(entry)
        size += len(key) + _ENTRY_OVERHEAD + (len(value) if value is not None else 0)
    if block:
        yield block


class KeyedFileReader:
    """Reads one file, only the blocks of ``key_groups``, and of these no byte twice."""

    def __init__(self, file: KeyedFile, reader: SnapshotReader, key_groups: KeyGroupRange) -> None:
        self._handle = file.handle
        self._reader = reader
        self._key_groups = key_groups
        self._index_bytes = file.index_bytes
        self._whole: bytes | None = None
        if reads_at_once(file, key_groups):
            self._whole = reader.read(file.handle)
            if len(self._whole) != file.handle.size:
                raise self._corrupt(f"it has {len(self._whole)} bytes, expected {file.handle.size}")
        footer = self._read_footer()
        self.ranges: list[KeyRange] = footer.ranges
        self._index = footer.blocks

    def batches(self) -> Iterator[list[Entry]]:
        """The entries of the key groups, in key order."""
        start, end = self._key_groups.start, self._key_groups.end
        for run in self._runs_of(self._key_groups):
            origin = run[0].offset
            data = self._read(origin, _length(run))
            for block in run:
                entries = self._decode(block, data[block.offset - origin : block.offset - origin + block.length])
                if block.first_group < start or block.last_group > end:
                    entries = [entry for entry in entries if read_group(entry[0]) in self._key_groups]
                yield entries

    def bytes_of(self, key_groups: KeyGroupRange) -> int:
        """How many bytes a reader of these key groups reads by ranges, its index included."""
        return self._index_bytes + sum(map(_length, self._runs_of(key_groups)))

    def _runs_of(self, key_groups: KeyGroupRange) -> Iterator[list[_Block]]:
        return _runs(
            [one for one in self._index if one.first_group <= key_groups.end and key_groups.start <= one.last_group]
        )

    def _decode(self, block: _Block, data: bytes) -> list[Entry]:
        if xxhash.xxh3_128_digest(data) != block.digest:
            raise self._corrupt(f"the block at byte {block.offset} does not have its checksum")
        raw = pa.decompress(data, decompressed_size=block.raw_length, codec=_CODEC)
        batch = pa.ipc.read_record_batch(raw, _SCHEMA)
        return list(zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True))

    def _read_footer(self) -> _Footer:
        size = self._handle.size
        if size < _TRAILER.size:
            raise self._corrupt(f"it has {size} bytes, fewer than a file of keyed state has")
        tail_start = max(0, size - (self._index_bytes or _TAIL_BYTES))
        tail = self._read(tail_start, size - tail_start)
        length, digest, magic, version = _TRAILER.unpack(tail[-_TRAILER.size :])
        if magic != _MAGIC or version != _VERSION:
            raise self._corrupt(f"its end is {magic!r} version {version}, expected {_MAGIC!r} version {_VERSION}")
        start = size - _TRAILER.size - length
        if start < 0:
            raise self._corrupt(f"its footer of {length} bytes does not fit its {size} bytes")
        footer = tail[start - tail_start : -_TRAILER.size] if start >= tail_start else self._read(start, length)
        self._index_bytes = len(tail) if start >= tail_start else len(tail) + length
        if xxhash.xxh3_128_digest(footer) != digest:
            raise self._corrupt("its footer does not have its checksum")
        return _footer_decoder.decode(footer)

    def _read(self, offset: int, length: int) -> bytes:
        if self._whole is not None:
            return self._whole[offset : offset + length]
        return self._reader.read_range(self._handle, offset, length)

    def _corrupt(self, message: str) -> CorruptFileError:
        return CorruptFileError(self._handle.path or "(stored inline in the checkpoint's metadata)", message)


def reads_at_once(file: KeyedFile, key_groups: KeyGroupRange) -> bool:
    """Whether a reader of these key groups takes the whole file in one read: it wants all of it, and it is small."""
    wanted = key_groups.start <= file.first_key_group and file.last_key_group <= key_groups.end
    return wanted and file.handle.size <= _WHOLE_FILE_BYTES


def _length(run: Sequence[_Block]) -> int:
    return run[-1].offset + run[-1].length - run[0].offset


def _runs(blocks: list[_Block]) -> Iterator[list[_Block]]:
    """Neighbouring blocks that are read together."""
    run: list[_Block] = []
    for block in blocks:
        if run and (
            block.offset != run[-1].offset + run[-1].length or block.offset + block.length - run[0].offset > _READ_BYTES
        ):
            yield run
            run = []
        run.append(block)
    if run:
        yield run
