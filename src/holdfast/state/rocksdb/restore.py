"""Entries of a snapshot that consists of RocksDB's own files, for whoever cannot take the files as they are."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.state.handles import NativeImage
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.layout import group_bytes, groups_end
from holdfast.state.rocksdb.access import rows
from holdfast.state.rocksdb.images import download_files
from holdfast.state.rocksdb.library import load_engine
from holdfast.state.snapshot_io import SnapshotReader

_CACHE_BYTES = 8 << 20
_READAHEAD = 2 << 20


def entries_of(
    image: NativeImage, reader: SnapshotReader, key_groups: KeyGroupRange, scratch: Path | None
) -> Iterator[tuple[bytes, bytes]]:
    """The entries of some key groups, in key order. The files are in a folder below ``scratch`` meanwhile."""
    with tempfile.TemporaryDirectory(prefix="image-", dir=scratch) as folder:
        files = Path(folder) / "db"
        download_files(image, reader, files)
        database = _open(files)
        try:
            yield from rows(database, group_bytes(key_groups.start), groups_end(key_groups.end), _READAHEAD)
        finally:
            database.close()


def _open(path: Path) -> Any:
    engine = load_engine()
    options, table = engine.Options(raw_mode=True), engine.BlockBasedOptions()
    table.set_block_cache(engine.Cache(_CACHE_BYTES))
    options.set_block_based_table_factory(table)
    return engine.Rdict(str(path), options, access_type=engine.AccessType.read_only(False))
