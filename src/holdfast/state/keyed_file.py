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

from collections.abc import Iterable, Iterator, Sequence

import msgspec
import pyarrow as pa
import xxhash

from holdfast.state.footed_file import WHOLE_FILE_BYTES, FileFormat, FootedFile
from holdfast.state.handles import KeyedFile
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.layout import read_group
from holdfast.state.snapshot_io import SnapshotReader

Entry = tuple[bytes, bytes | None]
KeyRange = tuple[bytes, bytes]

BLOCK_BYTES = 64 << 10
#: A file is closed when it has this many bytes.
PART_BYTES = 64 << 20
#: Neighbouring blocks are read together, up to this many bytes.
_READ_BYTES = 4 << 20
#: Rough bytes that an entry costs beside its key and value.
_ENTRY_OVERHEAD = 8

_FORMAT = FileFormat(b"HFKEYED", 1, "keyed state")
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
        ending = _FORMAT.ending(msgspec.msgpack.encode(_Footer(self._entries, self._ranges, self._index)))
        spans_all = bool(self._ranges) or not self._index
        first = self._key_groups.start if spans_all else self._index[0].first_group
        last = self._key_groups.end if spans_all else self._index[-1].last_group
        data = b"".join((*self._pieces, ending))
        return EncodedPart(data, first, last, self._entries, len(ending))


def _blocks(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """Cut at a change of the key group once a block is half full, and anywhere once it is full."""
    block: list[Entry] = []
    size, half = 0, BLOCK_BYTES // 2
    for entry in entries:
        key, value = entry
        if size >= half and (size >= BLOCK_BYTES or key[:2] != block[-1][0][:2]):
            yield block
            block, size = [], 0
        block.append(entry)
        size += len(key) + _ENTRY_OVERHEAD + (len(value) if value is not None else 0)
    if block:
        yield block


class KeyedFileReader:
    """Reads one file, only the blocks of ``key_groups``, and of these no byte twice."""

    def __init__(self, file: KeyedFile, reader: SnapshotReader, key_groups: KeyGroupRange) -> None:
        self._key_groups = key_groups
        self._file = FootedFile(file.handle, reader, _FORMAT, reads_at_once(file, key_groups), file.index_bytes)
        footer = _footer_decoder.decode(self._file.footer)
        self.ranges: list[KeyRange] = footer.ranges
        self._index = footer.blocks

    def batches(self) -> Iterator[list[Entry]]:
        """The entries of the key groups, in key order."""
        start, end = self._key_groups.start, self._key_groups.end
        for run in self._runs_of(self._key_groups):
            origin = run[0].offset
            data = self._file.read(origin, _length(run))
            for block in run:
                entries = self._decode(block, data[block.offset - origin : block.offset - origin + block.length])
                if block.first_group < start or block.last_group > end:
                    entries = [entry for entry in entries if read_group(entry[0]) in self._key_groups]
                yield entries

    def bytes_of(self, key_groups: KeyGroupRange) -> int:
        """How many bytes a reader of these key groups reads by ranges, its index included."""
        return self._file.footer_bytes + sum(map(_length, self._runs_of(key_groups)))

    def _runs_of(self, key_groups: KeyGroupRange) -> Iterator[list[_Block]]:
        return _runs(
            [one for one in self._index if one.first_group <= key_groups.end and key_groups.start <= one.last_group]
        )

    def _decode(self, block: _Block, data: bytes) -> list[Entry]:
        self._file.verify(data, block.offset, block.digest)
        raw = pa.decompress(data, decompressed_size=block.raw_length, codec=_CODEC)
        batch = pa.ipc.read_record_batch(raw, _SCHEMA)
        return list(zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True))


def reads_at_once(file: KeyedFile, key_groups: KeyGroupRange) -> bool:
    """Whether a reader of these key groups takes the whole file in one read: it wants all of it, and it is small."""
    wanted = key_groups.start <= file.first_key_group and file.last_key_group <= key_groups.end
    return wanted and file.handle.size <= WHOLE_FILE_BYTES


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
