"""What every state backend must do."""

from __future__ import annotations

import pickle
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import pytest

from holdfast.errors import StateError, StoreVersionError
from holdfast.state.backends import load_backend
from holdfast.state.heap.backend import HeapBackend
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.store import ChangedKeys, LocalStore, Stamp, StateBackend
from holdfast.testing.contracts import keyed_subtask as keyed
from holdfast.testing.contracts.other_process import command_of, environment_of
from holdfast.testing.contracts.stores import HIGHEST, LOWEST, commit_elsewhere, content, fresh_store, run_epoch

_VICTIM = """
import pickle, sys, time
from holdfast.state.store import Stamp
backend, directory, base, moment = pickle.load(open(sys.argv[1], "rb"))
store = backend.open(directory)
store.begin(base)
store.write([(b"k%05d" % number, b"new" * 30) for number in range(20_000)])
store.delete_range(b"k00000", b"k00100")
if moment == "after":
    store.commit(Stamp(2, "victim"))
print("here", flush=True)
time.sleep(60)
"""


def changed_since(store: LocalStore, epoch: int) -> ChangedKeys:
    """What the store knows to have changed, where it is to know it."""
    changes = store.changes_since(epoch)
    assert changes is not None, f"the change marks do not reach back to epoch {epoch}"
    return changes


def _applied(before: dict[bytes, bytes], changes: ChangedKeys, now: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """What a checkpoint of changes gives to who has the one before: ranges are deleted, then keys have their values."""
    found = {key: value for key, value in before.items() if not any(low <= key < high for low, high in changes.ranges)}
    for key in changes.keys:
        found.pop(key, None)
        if key in now:
            found[key] = now[key]
    return found


class StateBackendContract(ABC):
    """The suite for a kind of store, and for what it declares. A subclass gives one by the fixture ``backend``; it is
    installed, so that its entry point is found.

    ``NativeImageContract`` has it all, and more for a backend that declares ``native_images``.
    """

    #: How ``multiprocessing`` starts a process beside one by "spawn". "forkserver" is for engines that a fork breaks.
    start_method: ClassVar[str] = "forkserver"

    @pytest.fixture
    @abstractmethod
    def backend(self) -> StateBackend:
        """A backend as a job would have it."""

    def forget_process_caches(self) -> None:
        """Drop what the backend keeps in the process beside its stores, as another process does not have it."""

    # Versions

    def test_a_new_directory_has_no_stamp_and_cannot_begin(self, backend: StateBackend, tmp_path: Path) -> None:
        store = backend.open(tmp_path / "new")
        assert store.stamp() is None
        with pytest.raises(StoreVersionError, match=r"epoch 3 \(execution a\).*missing"):
            store.begin(Stamp(3, "a"))
        with pytest.raises(StateError, match="call begin first"):
            store.get(b"k")

    def test_load_replaces_everything(self, backend: StateBackend, tmp_path: Path) -> None:
        store, start = fresh_store(backend, tmp_path, {b"old": b"1"})
        run_epoch(store, start, {b"more": b"2"})
        store.load([[(b"a", b"1"), (b"b", b"2")], [(b"c", b"3"), (b"a", None)]], Stamp(7, "loaded"))
        assert store.stamp() == Stamp(7, "loaded")
        store.begin(Stamp(7, "loaded"))
        assert content(store) == {b"b": b"2", b"c": b"3"}
        assert changed_since(store, 7).keys == []
        assert store.changes_since(6) is None

    def test_a_failing_load_leaves_the_store_as_it_was(self, backend: StateBackend, tmp_path: Path) -> None:
        store, start = fresh_store(backend, tmp_path, {b"old": b"1"})

        def batches() -> Iterator[list[tuple[bytes, bytes]]]:
            yield [(b"a", b"1")]
            raise RuntimeError("the network is gone")

        with pytest.raises(RuntimeError, match="the network is gone"):
            store.load(batches(), Stamp(5, "x"))
        store.begin(start)
        assert content(store) == {b"old": b"1"}

    def test_reads_see_the_transactions_own_writes(self, backend: StateBackend, tmp_path: Path) -> None:
        store, start = fresh_store(backend, tmp_path, {b"a": b"1", b"b": b"2", b"c": b"3"})
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

    def test_rollback_drops_the_transaction(self, backend: StateBackend, tmp_path: Path) -> None:
        store, start = fresh_store(backend, tmp_path, {b"a": b"1", b"b": b"2"})
        store.begin(start)
        store.write([(b"a", b"9"), (b"z", b"9")])
        store.delete_range(b"b", b"c")
        store.rollback()
        store.rollback()
        assert store.stamp() == start
        store.begin(start)
        assert content(store) == {b"a": b"1", b"b": b"2"}

    def test_begin_needs_the_epoch_and_the_execution(self, backend: StateBackend, tmp_path: Path) -> None:
        store, start = fresh_store(backend, tmp_path)
        first = run_epoch(store, start, {b"a": b"1"}, nonce="right")
        with pytest.raises(StoreVersionError, match=r"epoch 1 \(execution wrong\)"):
            store.begin(Stamp(1, "wrong"))
        with pytest.raises(StoreVersionError, match=r"at epoch 2 .*it is at epoch 1 \(execution right\)"):
            store.begin(Stamp(2, "right"))
        store.begin(first)
        assert content(store) == {b"a": b"1"}

    def test_commit_wants_the_next_epoch(self, backend: StateBackend, tmp_path: Path) -> None:
        store, start = fresh_store(backend, tmp_path)
        store.begin(start)
        with pytest.raises(StoreVersionError, match="cannot be committed as epoch 5"):
            store.commit(Stamp(5, "n"))

    def test_an_unaccepted_commit_is_undone(self, backend: StateBackend, tmp_path: Path) -> None:
        store, start = fresh_store(backend, tmp_path, {b"a": b"1", b"b": b"2"})
        first = run_epoch(store, start, {b"c": b"3"})
        run_epoch(store, first, {b"a": b"9", b"b": None, b"d": b"9"}, nonce="nobody took it")
        store.begin(first)
        assert content(store) == {b"a": b"1", b"b": b"2", b"c": b"3"}
        store.write([(b"a", b"10")])
        second = Stamp(2, "taken")
        store.commit(second)
        assert store.stamp() == second
        with pytest.raises(StoreVersionError):
            store.begin(Stamp(2, "nobody took it"))

    def test_deleted_ranges_are_changes_and_are_undone(self, backend: StateBackend, tmp_path: Path) -> None:
        before = {b"m%04d" % number: b"v" for number in range(500)} | {b"a": b"1", b"z": b"1"}
        store, start = fresh_store(backend, tmp_path, before)
        store.begin(start)
        store.delete_range(b"m0100", b"m0400")
        store.delete_range(b"m0450", b"m0452")
        store.write([(b"m0200", b"again")])
        store.commit(Stamp(1, "n"))
        store.begin(Stamp(1, "n"))
        after = content(store)
        assert len(after) == 502 - 302 + 1
        assert _applied(before, changed_since(store, 0), after) == after
        store.begin(start)
        assert content(store) == before

    def test_changes_name_each_key_once_and_reach_back_to_the_forgotten(
        self, backend: StateBackend, tmp_path: Path
    ) -> None:
        store, stamp = fresh_store(backend, tmp_path, {b"a": b"1"})
        for number in range(1, 5):
            stamp = run_epoch(store, stamp, {b"a": b"%d" % (number + 1), b"k%d" % number: b"v"})
        store.begin(stamp)
        store.write([(b"running", b"1"), (b"a", b"x")])
        assert changed_since(store, 2).keys == [b"a", b"k3", b"k4", b"running"]
        assert changed_since(store, 4).keys == [b"a", b"running"]
        assert store.changes_since(9) is None
        store.forget_changes(2)
        assert changed_since(store, 2).keys == [b"a", b"k3", b"k4", b"running"]

    def test_forgetting_keeps_the_way_back_of_the_last_commit(self, backend: StateBackend, tmp_path: Path) -> None:
        store, start = fresh_store(backend, tmp_path, {b"a": b"1"})
        first = run_epoch(store, start, {b"a": b"2"})
        run_epoch(store, first, {b"a": b"3"}, nonce="lost")
        store.forget_changes(2)
        self.forget_process_caches()
        store.begin(first)
        assert content(store) == {b"a": b"2"}

    def test_writing_what_is_there_is_no_change(self, backend: StateBackend, tmp_path: Path) -> None:
        store, start = fresh_store(backend, tmp_path, {b"a": b"1"})
        store.begin(start)
        store.write([(b"a", b"1"), (b"never", None)])
        assert changed_since(store, 0).keys == []

    def test_writing_behind_an_open_scan(self, backend: StateBackend, tmp_path: Path) -> None:
        entries = {b"%05d" % number: b"v" for number in range(3000)}
        store, start = fresh_store(backend, tmp_path, entries)
        store.begin(start)
        seen = []
        for key, _ in store.scan(LOWEST, HIGHEST):
            seen.append(key)
            store.write([(key, None), (b"!" + key, b"behind")])
        assert seen == sorted(entries)
        assert len(content(store)) == 3000

    def test_two_stores_of_a_directory_in_one_process(self, backend: StateBackend, tmp_path: Path) -> None:
        store, start = fresh_store(backend, tmp_path, {b"a": b"1"})
        other = backend.open(tmp_path)
        first = run_epoch(store, start, {b"a": b"2"})
        assert other.stamp() == first
        other.begin(first)
        assert content(other) == {b"a": b"2"}
        other.rollback()
        store.close()
        store.close()
        other.begin(first)
        assert content(other) == {b"a": b"2"}

    def test_a_store_that_comes_back_sees_what_another_one_committed(
        self, backend: StateBackend, tmp_path: Path
    ) -> None:
        first, start = fresh_store(backend, tmp_path, {b"k": b"0"})
        own = run_epoch(first, start, {b"k": b"1", b"mine": b"1"}, "first")
        second = backend.open(tmp_path)
        other = run_epoch(second, own, {b"k": b"2", b"mine": None}, "second")
        first.begin(other)
        assert first.get(b"k") == b"2"
        assert first.get_many([b"k", b"mine"]) == [b"2", None]
        first.write([(b"k", b"3")])
        first.commit(Stamp(3, "first"))
        first.begin(other)  # by the undo of what was just committed
        assert first.get_many([b"k", b"mine"]) == [b"2", None]

    def test_it_travels_to_executors(self, backend: StateBackend, tmp_path: Path) -> None:
        travelled = pickle.loads(pickle.dumps(backend))
        assert travelled.name == backend.name
        assert travelled == backend

    def test_it_is_found_by_its_name(self, backend: StateBackend, tmp_path: Path) -> None:
        found = load_backend(backend.name, backend.options())
        assert type(found) is type(backend)
        assert (found.name, found.capabilities) == (backend.name, backend.capabilities)
        assert found.options() == backend.options()

    # Processes

    @pytest.mark.parametrize("method", [None, "spawn"])
    def test_another_process_goes_on(self, backend: StateBackend, tmp_path: Path, method: str | None) -> None:
        store, start = fresh_store(backend, tmp_path, {b"a": b"1"})
        first = run_epoch(store, start, {b"b": b"2"})
        changes = {b"c": b"3", b"a": None}
        second = commit_elsewhere(backend, tmp_path, first, changes, "child", method or self.start_method)
        assert store.stamp() == second
        store.begin(second)
        assert content(store) == {b"b": b"2", b"c": b"3"}
        third = Stamp(3, "parent")
        store.write([(b"d", b"4")])
        store.commit(third)
        self.forget_process_caches()
        store.begin(third)
        assert content(store) == {b"b": b"2", b"c": b"3", b"d": b"4"}

    def test_what_another_process_stepped_back_over_is_gone(self, backend: StateBackend, tmp_path: Path) -> None:
        store, start = fresh_store(backend, tmp_path, {b"a": b"1"})
        first = run_epoch(store, start, {b"b": b"2"})
        second = run_epoch(store, first, {b"c": b"3"}, nonce="parent")
        theirs = commit_elsewhere(backend, tmp_path, first, {b"d": b"4"}, "child", self.start_method)
        with pytest.raises(StoreVersionError, match=r"execution parent.*execution child"):
            store.begin(second)
        store.begin(theirs)
        assert content(store) == {b"a": b"1", b"b": b"2", b"d": b"4"}

    @pytest.mark.parametrize("moment", ["inside", "after"])
    def test_a_killed_process(self, backend: StateBackend, tmp_path: Path, moment: str) -> None:
        directory = tmp_path / "store"
        store, start = fresh_store(backend, directory, {b"a": b"1"})
        first = run_epoch(store, start, {b"b": b"2"})
        store.close()
        self.forget_process_caches()
        with self._elsewhere(backend, directory, first, moment, tmp_path):
            pass
        store = backend.open(directory)
        if moment == "after":
            assert store.stamp() == Stamp(2, "victim")
            store.begin(Stamp(2, "victim"))
            assert len(content(store)) == 20_000 - 100 + 2
        store.begin(first)
        assert content(store) == {b"a": b"1", b"b": b"2"}
        store.write([(b"c", b"3")])
        store.commit(Stamp(2, "again"))
        assert store.stamp() == Stamp(2, "again")

    # What it declares

    def test_several_processes(self, backend: StateBackend, tmp_path: Path) -> None:
        if not backend.capabilities.several_processes:
            pytest.skip("it does not declare several_processes")
        directory = tmp_path / "store"
        store, start = fresh_store(backend, directory, {b"a": b"1"})
        first = run_epoch(store, start, {b"b": b"2"})
        with self._elsewhere(backend, directory, first, "inside", tmp_path):
            assert store.stamp() == backend.open(directory).stamp() == first

    def test_bounded_memory(self, backend: StateBackend, tmp_path: Path) -> None:
        if not backend.capabilities.bounded_memory:
            pytest.skip("it does not declare bounded_memory")
        assert backend.cache_limit is not None and backend.cache_limit >= 0

    def test_a_copy_is_what_was_committed_and_goes_its_own_way(self, backend: StateBackend, tmp_path: Path) -> None:
        source, target = tmp_path / "source", tmp_path / "target"
        store, start = fresh_store(backend, source, {b"a": b"1"})
        first = run_epoch(store, start, {b"b": b"2"})
        if not backend.copy(source, target, first):
            assert not target.exists(), "what could not be copied leaves nothing"
            return
        copied = backend.open(target)
        second = run_epoch(copied, first, {b"c": b"3"}, "copy")
        copied.begin(second)
        assert content(copied) == {b"a": b"1", b"b": b"2", b"c": b"3"}
        store.begin(first)
        assert content(store) == {b"a": b"1", b"b": b"2"}
        for one in (copied, store):
            one.close()

    # Checkpoints

    def test_a_checkpoint_and_its_changes_are_restored(self, backend: StateBackend, tmp_path: Path) -> None:
        task = self._subtask(backend, tmp_path / "source")
        keyed.fill(task, range(50))
        full = keyed.checkpoint(task, tmp_path, 1)
        keyed.fill(task, range(45, 55))
        keyed.clear(task, range(5))
        delta = keyed.checkpoint(task, tmp_path, 2, base=1)
        expected = keyed.content_of(task, range(60))
        again = keyed.restored(backend, tmp_path / "again", [keyed.chain(full, delta)], tmp_path)
        assert keyed.content_of(again, range(60)) == expected
        assert keyed.fired(again) == [(key, key) for key in range(55)]
        for one in (task, again):
            one.close()

    @pytest.mark.parametrize("written_by_it", [True, False])
    def test_every_backend_reads_the_checkpoints_of_every_other(
        self, backend: StateBackend, tmp_path: Path, written_by_it: bool
    ) -> None:
        writes, reads = (backend, HeapBackend()) if written_by_it else (HeapBackend(), backend)
        task = self._subtask(writes, tmp_path / "source")
        keyed.fill(task, range(50))
        full = keyed.checkpoint(task, tmp_path, 1)
        expected = keyed.content_of(task, range(50))
        halves = [KeyGroupRange(0, 63), KeyGroupRange(64, keyed.MAX_PARALLELISM - 1)]
        subtasks = [keyed.restored(reads, tmp_path / str(half.start), [full], tmp_path, half) for half in halves]
        found = [keyed.content_of(each, keyed.owned(each, range(50))) for each in subtasks]
        assert found[0] and found[1] and found[0] | found[1] == expected
        assert sorted(keyed.fired(subtasks[0]) + keyed.fired(subtasks[1])) == [(key, key) for key in range(50)]
        for one in (task, *subtasks):
            one.close()

    # Inside

    def _subtask(self, kind: StateBackend, directory: Path) -> keyed.KeyedSubtask:
        return keyed.KeyedSubtask(kind, directory, forget=self.forget_process_caches)

    @contextmanager
    def _elsewhere(
        self, backend: StateBackend, directory: Path, base: Stamp, moment: str, scratch: Path
    ) -> Iterator[None]:
        """A process that has changed the store behind ``base``, and is killed at the end: inside of its transaction, or
        after its commit.
        """
        command = command_of(_VICTIM, (backend, directory, base, moment), scratch)
        victim = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment_of())
        try:
            assert victim.stdout is not None and victim.stdout.readline() == b"here\n"
            yield
        finally:
            victim.send_signal(signal.SIGKILL)
            victim.communicate()
