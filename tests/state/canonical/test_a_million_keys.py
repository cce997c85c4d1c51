"""A million keys in a savepoint of tables: from every backend to another one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import xxhash

from benchmarks.large_state import state_bytes, write_state
from holdfast.state.canonical.keyed_tables import write_keyed_tables
from holdfast.state.canonical.places import TablePlace
from holdfast.state.handles import CheckpointRequest, KeyedSnapshot, SavepointFormat, SnapshotType
from holdfast.state.keyed_backend import KeyedScope, KeyedStateBackend
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.keys import KeyCodec
from holdfast.state.restore import KeyedShare, RestoreForecast, restore_into
from holdfast.state.savepoint_files import SavepointWriter
from holdfast.state.snapshot_files import FileSnapshotReader, FileSnapshotWriter
from holdfast.state.snapshots import sync_prepare
from holdfast.state.store import LocalStore, Stamp
from holdfast.testing.contracts.stores import HIGHEST, LOWEST
from holdfast.types.typeinfo import Types
from tests.state.stores import forget_process_caches, make_backend

KEYS = 1_000_000
MAX_PARALLELISM = 128
ALL = KeyGroupRange(0, MAX_PARALLELISM - 1)
BASE = Stamp(1, "restored")
SAVEPOINT = CheckpointRequest(2, SnapshotType.SAVEPOINT, 0, 1, 2, savepoint_format=SavepointFormat.CANONICAL)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[KeyedSnapshot], FileSnapshotReader]:
    """The state as a checkpoint has it."""
    directory = str(tmp_path_factory.mktemp("image"))
    return write_state(KEYS, 1, MAX_PARALLELISM, FileSnapshotWriter(directory, 1, 1)), FileSnapshotReader(directory)


def loaded(
    name: str, directory: Path, snapshots: list[KeyedSnapshot], reader: FileSnapshotReader
) -> Iterator[LocalStore]:
    store = make_backend(name).open(directory)
    restore_into(store, KeyedShare.of(snapshots, ALL), reader, BASE)
    store.begin(BASE)
    yield store
    store.close()
    forget_process_caches()


def digest(store: LocalStore) -> tuple[int, str]:
    """The digest of all entries in key order."""
    found, count = xxhash.xxh3_128(), 0
    for key, value in store.scan(LOWEST, HIGHEST):
        found.update(key)
        found.update(value)
        count += 1
    return count, found.hexdigest()


@pytest.mark.slow
@pytest.mark.parametrize(("source", "target"), [("heap", "lmdb"), ("lmdb", "rocksdb"), ("rocksdb", "heap")])
def test_from_one_backend_to_another(
    source: str, target: str, image: tuple[list[KeyedSnapshot], FileSnapshotReader], tmp_path: Path
) -> None:
    scope = KeyedScope("op", KeyCodec.for_type(Types.LONG()), ALL, MAX_PARALLELISM)
    for store in loaded(source, tmp_path / "source", *image):
        expected = digest(store)
        backend = KeyedStateBackend(store, scope, source, None)
        place = TablePlace.of("op-id", "op", "Op", 0, "nonce")
        prepared = sync_prepare(backend, SAVEPOINT, "op", 0)
        written = write_keyed_tables(prepared, SavepointWriter(str(tmp_path / "savepoint"), 2, 1), place, lambda: None)
    assert expected[0] == KEYS + 1, "and the registry of states"
    ranges = [KeyGroupRange.of(subtask, MAX_PARALLELISM, 3) for subtask in range(3)]
    forecast = RestoreForecast(FileSnapshotReader(str(tmp_path / "savepoint")))
    read = sum(forecast.bytes_of(KeyedShare.of([written], one)) for one in ranges)
    assert read < 1.1 * state_bytes([written]), "three subtasks together"
    reader = FileSnapshotReader(str(tmp_path / "savepoint"))
    for store in loaded(target, tmp_path / target, [written], reader):
        assert digest(store) == expected
