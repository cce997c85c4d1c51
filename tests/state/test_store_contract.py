"""The contract of state backends on Holdfast's own, and what their stores do beside it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.errors import StoreVersionError
from holdfast.state import epoch_log
from holdfast.state.lmdb.backend import LmdbBackend
from holdfast.state.store import Stamp, StateBackend
from holdfast.testing.contracts import NativeImageContract, StateBackendContract
from holdfast.testing.contracts.stores import content
from holdfast.testing.contracts.stores import run_epoch as run
from tests.state.stores import BACKENDS, forget_process_caches, fresh_store, make_backend


class TestHeap(StateBackendContract):
    start_method = "fork"

    @pytest.fixture
    def backend(self) -> StateBackend:
        return make_backend("heap")

    def forget_process_caches(self) -> None:
        forget_process_caches()


class TestLmdb(StateBackendContract):
    start_method = "fork"

    @pytest.fixture
    def backend(self) -> StateBackend:
        return LmdbBackend()


class TestLmdbImages(NativeImageContract):
    @pytest.fixture
    def backend(self) -> StateBackend:
        return LmdbBackend(images_from=0)



class TestRocksDb(NativeImageContract):
    @pytest.fixture
    def backend(self) -> StateBackend:
        return make_backend("rocksdb")


@pytest.fixture(params=BACKENDS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def test_steps_back_over_several_epochs(name: str, tmp_path: Path) -> None:
    store, stamp = fresh_store(name, tmp_path, {b"k": b"0"})
    stamps = [stamp]
    for number in range(1, 6):
        stamps.append(run(store, stamps[-1], {b"k": str(number).encode(), b"own%d" % number: b"x"}))
    store.begin(stamps[2])
    assert content(store) == {b"k": b"2", b"own1": b"x", b"own2": b"x"}
    assert store.changes_since(0).keys == [b"k", b"own1", b"own2"]


def test_undo_and_marks_cover_deleted_ranges(name: str, tmp_path: Path) -> None:
    before = {b"m%04d" % number: b"v" for number in range(500)} | {b"a": b"1", b"z": b"1"}
    store, start = fresh_store(name, tmp_path, before)
    store.begin(start)
    store.delete_range(b"m0100", b"m0400")
    store.delete_range(b"m0450", b"m0452")
    store.write([(b"m0200", b"again")])
    store.commit(Stamp(1, "n"))
    store.begin(Stamp(1, "n"))
    assert len(content(store)) == 502 - 302 + 1
    changes = store.changes_since(0)
    assert changes.ranges == ((b"m0100", b"m0400"),), "two keys are no range worth a tombstone"
    assert set(changes.keys) == {b"m%04d" % number for number in [*range(100, 400), 450, 451]}
    store.begin(start)
    assert content(store) == before


def test_records_are_dropped_when_they_outgrow_the_state(name: str, tmp_path: Path, monkeypatch) -> None:
    limit = 100_000
    for module in ("holdfast.state.heap.store", "holdfast.state.lmdb.store", "holdfast.state.rocksdb.store"):
        monkeypatch.setattr(f"{module}.RECORDS_FLOOR_BYTES", limit)
    store, stamp = fresh_store(name, tmp_path)
    for number in range(30):
        stamp = run(store, stamp, {b"key": os.urandom(9_000) + b"%d" % number})
    assert store.changes_since(0) is None
    assert store.changes_since(29) is not None
    store.begin(Stamp(29, "n"))
    assert len(content(store)) == 1


def test_reading_more_than_is_remembered(name: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("holdfast.state.lmdb.store._REMEMBERED", 10)
    entries = {b"%03d" % number: b"v%d" % number for number in range(100)}
    store, start = fresh_store(name, tmp_path, entries)
    store.begin(start)
    for key, value in entries.items():
        assert store.get(key) == value
    assert store.get_many(list(entries)) == list(entries.values())
    store.write([(key, b"new") for key in entries])
    store.commit(Stamp(1, "a"))
    store.begin(start)
    assert content(store) == entries


def test_a_restart_of_the_host_makes_the_store_missing(name: str, tmp_path: Path, monkeypatch) -> None:
    store, start = fresh_store(name, tmp_path, {b"a": b"1"})
    store.close()
    monkeypatch.setattr(epoch_log, "boot_id", lambda: "another start")
    again = make_backend(name).open(tmp_path)
    assert again.stamp() is None
    with pytest.raises(StoreVersionError, match="before the host's last start"):
        again.begin(start)
