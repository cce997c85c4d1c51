"""How much of a large state a restore reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.large_state import state_bytes, write_state
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.restore import KeyedShare, RestoreForecast, restore_into
from holdfast.state.snapshot_files import FileSnapshotReader, FileSnapshotWriter
from holdfast.state.snapshot_io import CountingReader
from holdfast.state.store import Stamp
from holdfast.testing.contracts.stores import content
from tests.state.stores import make_backend

KEYS = 1_000_000
MAX_PARALLELISM = 128


@pytest.mark.slow
def test_a_million_keys_from_two_to_three_subtasks(tmp_path: Path) -> None:
    snapshots = write_state(KEYS, 2, MAX_PARALLELISM, FileSnapshotWriter(str(tmp_path), 1, 1), deltas=5)
    assert [len(snapshot.files) for snapshot in snapshots] == [6, 6]
    size = state_bytes(snapshots)
    assert size > 8 * KEYS, "the state is not compressed away"
    reader = CountingReader(FileSnapshotReader(str(tmp_path)))
    entries = 0
    for subtask in range(3):
        share = KeyedShare.of(snapshots, KeyGroupRange.of(subtask, MAX_PARALLELISM, 3))
        before = reader.bytes_read
        store = make_backend("heap").open(tmp_path / f"store-{subtask}")
        restore_into(store, share, reader, Stamp(1, "restored"))
        store.begin(Stamp(1, "restored"))
        entries += len(content(store)) - 1
        store.close()
        assert RestoreForecast(FileSnapshotReader(str(tmp_path))).bytes_of(share) == reader.bytes_read - before
    assert entries == KEYS
    assert reader.bytes_read < 1.1 * size


@pytest.mark.parametrize(
    ("parallelism", "most"), [(1, 1.0), (2, 1.0), (3, 1.1), (5, 1.1), (7, 1.2), (16, 1.3)], ids=lambda value: f"{value}"
)
def test_a_rescaled_chain_is_read_about_once(tmp_path: Path, parallelism: int, most: float) -> None:
    """A block that two subtasks share is read by both, and so is every index."""
    snapshots = write_state(100_000, 2, MAX_PARALLELISM, FileSnapshotWriter(str(tmp_path), 1, 1, 0), deltas=3)
    forecast = RestoreForecast(FileSnapshotReader(str(tmp_path)))
    shares = [
        KeyedShare.of(snapshots, KeyGroupRange.of(subtask, MAX_PARALLELISM, parallelism))
        for subtask in range(parallelism)
    ]
    assert 1.0 <= sum(map(forecast.bytes_of, shares)) / state_bytes(snapshots) <= most
