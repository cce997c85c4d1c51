"""The contract of LocalStore, on every backend."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from holdfast.errors import StateError, StoreVersionError
from holdfast.state import epoch_log
from holdfast.state.store import Stamp
from tests.state.stores import (
    BACKENDS,
    HIGHEST,
    LOWEST,
    commit_elsewhere,
    content,
    forget_process_caches,
    fresh_store,
    make_backend,
)
from tests.state.stores import run_epoch as run

pytestmark = pytest.mark.parametrize("name", BACKENDS)


def test_a_new_directory_has_no_stamp_and_cannot_begin(name: str, tmp_path: Path) -> None:
    store = make_backend(name).open(tmp_path / "new")
    assert store.stamp() is None
    with pytest.raises(StoreVersionError, match=r"epoch 3 \(execution a\).*missing"):
        store.begin(Stamp(3, "a"))
    with pytest.raises(StateError, match="call begin first"):
        store.get(b"k")


def test_load_replaces_everything(name: str, tmp_path: Path) -> None:
    store, start = fresh_store(name, tmp_path, {b"old": b"1"})
    run(store, start, {b"more": b"2"})
    store.load([[(b"a", b"1"), (b"b", b"2")], [(b"c", b"3"), (b"a", None)]], Stamp(7, "loaded"))
    assert store.stamp() == Stamp(7, "loaded")
    store.begin(Stamp(7, "loaded"))
    assert content(store) == {b"b": b"2", b"c": b"3"}
    changes = store.changes_since(7)
    assert changes is not None and changes.keys == []
    assert store.changes_since(6) is None


def test_a_failing_load_leaves_the_store_as_it_was(name: str, tmp_path: Path) -> None:
    store, start = fresh_store(name, tmp_path, {b"old": b"1"})

    def batches():
        yield [(b"a", b"1")]
        raise RuntimeError("the network is gone")

    with pytest.raises(RuntimeError, match="the network is gone"):
        store.load(batches(), Stamp(5, "x"))
    store.begin(start)
    assert content(store) == {b"old": b"1"}


def test_reads_see_the_transactions_own_writes(name: str, tmp_path: Path) -> None:
    store, start = fresh_store(name, tmp_path, {b"a": b"1", b"b": b"2", b"c": b"3"})
    store.begin(start)
    store.write([(b"d", b"4"), (b"b", None), (b"a", b"")])
    assert store.get(b"a") == b""
    assert store.get(b"b") is None
    assert store.get_many([b"d", b"b", b"c", b"d"]) == [b"4", None, b"3", b"4"]
    assert list(store.scan(b"a", b"d")) == [(b"a", b""), (b"c", b"3")]
    assert store.last_key(LOWEST, HIGHEST) == b"d"
    assert store.last_key(LOWEST, b"d") == b"c"
    assert store.last_key(b"e", HIGHEST) is None
    assert store.last_key(b"b", b"c") is None


def test_rollback_drops_the_transaction(name: str, tmp_path: Path) -> None:
    store, start = fresh_store(name, tmp_path, {b"a": b"1", b"b": b"2"})
    store.begin(start)
    store.write([(b"a", b"9"), (b"z", b"9")])
    store.delete_range(b"b", b"c")
    store.rollback()
    store.rollback()
    assert store.stamp() == start
    store.begin(start)
    assert content(store) == {b"a": b"1", b"b": b"2"}


def test_begin_needs_the_epoch_and_the_execution(name: str, tmp_path: Path) -> None:
    store, start = fresh_store(name, tmp_path)
    first = run(store, start, {b"a": b"1"}, nonce="right")
    with pytest.raises(StoreVersionError, match=r"epoch 1 \(execution wrong\)"):
        store.begin(Stamp(1, "wrong"))
    with pytest.raises(StoreVersionError, match=r"at epoch 2 .*it is at epoch 1 \(execution right\)"):
        store.begin(Stamp(2, "right"))
    store.begin(first)
    assert content(store) == {b"a": b"1"}


def test_commit_wants_the_next_epoch(name: str, tmp_path: Path) -> None:
    store, start = fresh_store(name, tmp_path)
    store.begin(start)
    with pytest.raises(StoreVersionError, match="cannot be committed as epoch 5"):
        store.commit(Stamp(5, "n"))


def test_an_unaccepted_commit_is_undone(name: str, tmp_path: Path) -> None:
    store, start = fresh_store(name, tmp_path, {b"a": b"1", b"b": b"2"})
    first = run(store, start, {b"c": b"3"})
    run(store, first, {b"a": b"9", b"b": None, b"d": b"9"}, nonce="nobody took it")
    store.begin(first)
    assert content(store) == {b"a": b"1", b"b": b"2", b"c": b"3"}
    store.write([(b"a", b"10")])
    second = Stamp(2, "taken")
    store.commit(second)
    assert store.stamp() == second
    with pytest.raises(StoreVersionError):
        store.begin(Stamp(2, "nobody took it"))


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


def test_changes_name_each_key_once_and_reach_back_to_the_forgotten(name: str, tmp_path: Path) -> None:
    store, stamp = fresh_store(name, tmp_path, {b"a": b"1"})
    for number in range(1, 5):
        stamp = run(store, stamp, {b"a": b"%d" % (number + 1), b"k%d" % number: b"v"})
    store.begin(stamp)
    store.write([(b"running", b"1"), (b"a", b"x")])
    assert store.changes_since(2).keys == [b"a", b"k3", b"k4", b"running"]
    assert store.changes_since(4).keys == [b"a", b"running"]
    assert store.changes_since(9) is None
    store.forget_changes(2)
    assert store.changes_since(2).keys == [b"a", b"k3", b"k4", b"running"]


def test_forgetting_keeps_the_way_back_of_the_last_commit(name: str, tmp_path: Path) -> None:
    store, start = fresh_store(name, tmp_path, {b"a": b"1"})
    first = run(store, start, {b"a": b"2"})
    run(store, first, {b"a": b"3"}, nonce="lost")
    store.forget_changes(2)
    forget_process_caches()
    store.begin(first)
    assert content(store) == {b"a": b"2"}


def test_writing_what_is_there_is_no_change(name: str, tmp_path: Path) -> None:
    store, start = fresh_store(name, tmp_path, {b"a": b"1"})
    store.begin(start)
    store.write([(b"a", b"1"), (b"never", None)])
    assert store.changes_since(0).keys == []


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


def test_writing_behind_an_open_scan(name: str, tmp_path: Path) -> None:
    entries = {b"%05d" % number: b"v" for number in range(3000)}
    store, start = fresh_store(name, tmp_path, entries)
    store.begin(start)
    seen = []
    for key, _ in store.scan(LOWEST, HIGHEST):
        seen.append(key)
        store.write([(key, None), (b"!" + key, b"behind")])
    assert seen == sorted(entries)
    assert len(content(store)) == 3000


def test_two_stores_of_a_directory_in_one_process(name: str, tmp_path: Path) -> None:
    store, start = fresh_store(name, tmp_path, {b"a": b"1"})
    other = make_backend(name).open(tmp_path)
    first = run(store, start, {b"a": b"2"})
    assert other.stamp() == first
    other.begin(first)
    assert content(other) == {b"a": b"2"}
    other.rollback()
    store.close()
    store.close()
    other.begin(first)
    assert content(other) == {b"a": b"2"}


def test_a_store_that_comes_back_sees_what_another_one_committed(name: str, tmp_path: Path) -> None:
    first, start = fresh_store(name, tmp_path, {b"k": b"0"})
    own = run(first, start, {b"k": b"1", b"mine": b"1"}, "first")
    second = make_backend(name).open(tmp_path)
    other = run(second, own, {b"k": b"2", b"mine": None}, "second")
    first.begin(other)
    assert first.get(b"k") == b"2"
    assert first.get_many([b"k", b"mine"]) == [b"2", None]
    first.write([(b"k", b"3")])
    first.commit(Stamp(3, "first"))
    first.begin(other)  # by the undo of what was just committed
    assert first.get_many([b"k", b"mine"]) == [b"2", None]


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


def test_backend_travels_to_executors(name: str, tmp_path: Path) -> None:
    import pickle

    backend = pickle.loads(pickle.dumps(make_backend(name)))
    assert backend.name == name
    assert backend == make_backend(name)


@pytest.mark.parametrize("method", [None, "spawn"])
def test_another_process_goes_on(name: str, tmp_path: Path, method: str | None) -> None:
    store, start = fresh_store(name, tmp_path, {b"a": b"1"})
    first = run(store, start, {b"b": b"2"})
    second = Stamp(2, "child")
    assert commit_elsewhere(name, tmp_path, first, {b"c": b"3", b"a": None}, second, method) == 0
    assert store.stamp() == second
    store.begin(second)
    assert content(store) == {b"b": b"2", b"c": b"3"}
    third = Stamp(3, "parent")
    store.write([(b"d", b"4")])
    store.commit(third)
    forget_process_caches()
    store.begin(third)
    assert content(store) == {b"b": b"2", b"c": b"3", b"d": b"4"}


def test_what_another_process_stepped_back_over_is_gone(name: str, tmp_path: Path) -> None:
    store, start = fresh_store(name, tmp_path, {b"a": b"1"})
    first = run(store, start, {b"b": b"2"})
    second = run(store, first, {b"c": b"3"}, nonce="parent")
    assert commit_elsewhere(name, tmp_path, first, {b"d": b"4"}, Stamp(2, "child")) == 0
    with pytest.raises(StoreVersionError, match=r"execution parent.*execution child"):
        store.begin(second)
    store.begin(Stamp(2, "child"))
    assert content(store) == {b"a": b"1", b"b": b"2", b"d": b"4"}


_VICTIM = """
    import sys, time
    from pathlib import Path
    from holdfast.state.store import Stamp
    from tests.state.stores import make_backend
    name, directory, moment = sys.argv[1:]
    store = make_backend(name).open(Path(directory))
    store.begin(Stamp(1, "n"))
    store.write([(b"k%05d" % number, b"new" * 30) for number in range(20_000)])
    store.delete_range(b"k00000", b"k00100")
    if moment == "after":
        store.commit(Stamp(2, "victim"))
    print("here", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("moment", ["inside", "after"])
def test_a_killed_process(name: str, tmp_path: Path, moment: str) -> None:
    store, start = fresh_store(name, tmp_path, {b"a": b"1"})
    first = run(store, start, {b"b": b"2"})
    store.close()
    forget_process_caches()
    victim = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(_VICTIM), name, str(tmp_path), moment],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    try:
        assert victim.stdout is not None and victim.stdout.readline() == b"here\n"
    finally:
        victim.send_signal(signal.SIGKILL)
        victim.wait()
    store = make_backend(name).open(tmp_path)
    if moment == "after":
        assert store.stamp() == Stamp(2, "victim")
        store.begin(Stamp(2, "victim"))
        assert len(content(store)) == 20_000 - 100 + 2
    store.begin(first)
    assert content(store) == {b"a": b"1", b"b": b"2"}
    store.write([(b"c", b"3")])
    store.commit(Stamp(2, "again"))
    assert store.stamp() == Stamp(2, "again")
