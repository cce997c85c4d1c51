"""Snapshot files in memory, for tests: nothing is verified here, so that what finds a damage is the code under test."""

from __future__ import annotations

import msgspec

from holdfast.errors import CorruptFileError
from holdfast.state.handles import FileHandle, KeyedSnapshot
from holdfast.state.snapshot_io import SnapshotReader, SnapshotWriter
from holdfast.storage.checksum import checksum


class MemoryFiles(SnapshotWriter, SnapshotReader):
    """Writer and reader at once. ``files`` may be damaged by a test; reads are counted."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.shared: set[str] = set()
        self.bytes_read = 0
        self.reads = 0

    def write(self, name: str, data: bytes, shared: bool = False) -> FileHandle:
        path = f"{len(self.files)}-{name}"
        self.files[path] = data
        if shared:
            self.shared.add(path)
        return FileHandle(path, len(data), checksum(data))

    def read(self, handle: FileHandle) -> bytes:
        return self.read_range(handle, 0, handle.size)

    def read_range(self, handle: FileHandle, offset: int, length: int) -> bytes:
        data = self.files[handle.path][offset : offset + length]
        if len(data) != length:
            raise CorruptFileError(handle.path, f"has only {len(data)} of {length} bytes at {offset}")
        self.bytes_read += length
        self.reads += 1
        return data


def chain(base: KeyedSnapshot, newer: KeyedSnapshot) -> KeyedSnapshot:
    """``newer`` with the files it is based on before its own, as the coordinator joins them."""
    if newer.stands_alone:
        return newer
    return msgspec.structs.replace(newer, native=base.native, files=base.files + newer.files)
