"""Any history of a store with snapshots of its files and of changed keys: every retained one restores what was then."""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from holdfast.checkpoint.rebase import MAX_CHAIN_FILES, compose, full_image_due
from holdfast.state.handles import CheckpointRequest, KeyedSnapshot, SnapshotType, SubtaskSnapshot
from holdfast.state.keyed_backend import KeyedStateBackend
from holdfast.state.restore import KeyedShare, restore_into
from holdfast.state.rocksdb import snapshot as snapshot_module
from holdfast.state.rocksdb import store as store_module
from holdfast.state.rocksdb.backend import RocksDbBackend
from holdfast.state.rocksdb.options import RocksDbOptions
from holdfast.state.rocksdb.snapshot import PreparedChanges, PreparedImage
from holdfast.state.snapshots import async_write, sync_prepare
from holdfast.state.store import Stamp, StateBackend
from holdfast.state.strategies import PreparedSnapshot
from holdfast.testing.contracts.keyed_subtask import scope_of
from tests.kit.properties import examples
from tests.state.snapshot_memory import MemoryFiles
from tests.state.stores import LMDB_IMAGE, make_backend
from tests.state.test_snapshots import ALL

#: Files and levels a thousand times smaller, so that little state has the shape of much.
SMALL = RocksDbOptions(file_size=64 << 10, level_base=256 << 10, write_buffer_size=128 << 10)
_keys = st.integers(0, 300)


def stored_key(number: int) -> bytes:
    return (number % 128).to_bytes(2, "big") + b"\0\1" + number.to_bytes(4, "big")


class Retained(NamedTuple):
    """A checkpoint, with what the store held at it."""

    stamp: Stamp
    snapshot: KeyedSnapshot
    content: dict[bytes, bytes]


class Incremental(RuleBasedStateMachine):
    """``model`` is the running epoch's content, ``committed`` that of the last one."""

    name = "rocksdb"
    backend: StateBackend = RocksDbBackend(SMALL)
    #: Those that took a snapshot, in any example.
    strategies: ClassVar[set[str]] = set()

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.stores = self.number = 0
        self.stamp = Stamp(0, "start")
        self.files = MemoryFiles()
        self.model: dict[bytes, bytes] = {}
        self.committed: dict[bytes, bytes] = {}
        self.retained: list[Retained] = []
        self._open(new=True)

    def _open(self, new: bool) -> None:
        self.store = self.backend.open(self.root / str(self.stores))
        if new:
            self.store.load([], self.stamp)
        self.store.begin(self.stamp)

    @rule(keys=st.lists(_keys, unique=True, max_size=40), value=st.binary(max_size=60))
    def put(self, keys: list[int], value: bytes) -> None:
        entries = {stored_key(key): value + str(key).encode() for key in keys}
        self.store.write(sorted(entries.items()))
        self.model |= entries

    @rule(keys=st.lists(_keys, unique=True, max_size=20))
    def delete(self, keys: list[int]) -> None:
        self.store.write([(stored_key(key), None) for key in keys])
        for key in keys:
            self.model.pop(stored_key(key), None)

    @rule(start=_keys, length=st.integers(1, 120))
    def delete_range(self, start: int, length: int) -> None:
        bounds = sorted((stored_key(start), (min(127, start % 128 + length)).to_bytes(2, "big") + b"\0\1"))
        self.store.delete_range(*bounds)
        self.model = {key: value for key, value in self.model.items() if not bounds[0] <= key < bounds[1]}

    @rule(execution=st.sampled_from(["accepted", "not accepted", "rolled back", "other process"]))
    def end_epoch(self, execution: str) -> None:
        if execution == "rolled back":
            self.store.rollback()
        else:
            self.store.commit(Stamp(self.stamp.epoch + 1, f"{execution}-{self.number}"))
        if execution in ("not accepted", "rolled back"):
            self.model = dict(self.committed)
        else:
            self.stamp = Stamp(self.stamp.epoch + 1, f"{execution}-{self.number}")
            self.committed = dict(self.model)
        if execution == "other process":
            self.store.close()
            self._open(new=False)
        else:
            self.store.begin(self.stamp)

    @rule(fate=st.sampled_from(["completed", "completed", "completed", "aborted", "aborted when stored", "full"]))
    def checkpoint(self, fate: str) -> None:
        base = self.retained[-1] if self.retained and fate != "full" else None
        prepared = self._prepared(base)
        taken = self.number, dict(self.model)
        self.end_epoch("accepted")
        if fate != "aborted":
            self._store(prepared, *taken, base, retained=fate != "aborted when stored")

    @rule()
    def two_checkpoints_at_a_time(self) -> None:
        """Both build on the one before them; the first may complete before the second is stored."""
        base = self.retained[-1] if self.retained else None
        first = self._prepared(base)
        taken = self.number, dict(self.model)
        self.end_epoch("accepted")
        stamp = self.stamp
        self.put([1, 2], b"between")
        second = self._prepared(base)
        self._store(first, *taken, base, stamp=stamp)
        taken = self.number, dict(self.model)
        self.end_epoch("accepted")
        self.store.forget_changes(stamp.epoch)
        self._store(second, *taken, base)

    def _prepared(self, base: Retained | None) -> PreparedSnapshot:
        self.number += 1
        keyed = KeyedStateBackend(self.store, scope_of(), self.name, None)
        base_epoch = None if base is None else base.stamp.epoch
        request = CheckpointRequest(self.number, SnapshotType.CHECKPOINT, 0, 1, self.stamp.epoch + 1, base_epoch)
        prepared = sync_prepare(keyed, request, "counter", 0)
        self.strategies.add(prepared.strategy)
        return prepared

    def _store(
        self,
        prepared: PreparedSnapshot,
        number: int,
        content: dict[bytes, bytes],
        base: Retained | None,
        stamp: Stamp | None = None,
        retained: bool = True,
    ) -> None:
        written = async_write(prepared, self.files, f"keyed-{number}")
        whole = composed(written, None if base is None else base.snapshot)
        if retained:
            self.retained = [*self.retained[-3:], Retained(stamp or self.stamp, whole, content)]

    @precondition(lambda self: self.retained)
    @rule()
    def completion_is_told(self) -> None:
        self.store.forget_changes(self.retained[-1].stamp.epoch)

    @precondition(lambda self: self.retained)
    @rule()
    def fail_and_restore(self) -> None:
        self.store.close()
        stamp, snapshot, content = self.retained[-1]
        self.stores += 1
        self.stamp = Stamp(stamp.epoch, f"restored-{self.stores}")
        self.store = self.backend.open(self.root / str(self.stores))
        restore_into(self.store, KeyedShare.of([snapshot], ALL), self.files, self.stamp)
        self.store.begin(self.stamp)
        self.model, self.committed = dict(content), dict(content)
        self.retained[-1] = Retained(self.stamp, snapshot, content)

    @precondition(lambda self: self.retained)
    @rule()
    def fail_and_go_on_from_the_image(self) -> None:
        stamp, _, content = self.retained[-1]
        self.store.rollback()
        here, there = (self.root / str(number) for number in (self.stores, self.stores + 1))
        if not self.backend.copy(here, there, stamp):
            self.store.begin(self.stamp)
            self.model = dict(self.committed)
            return
        self.store.close()
        self.stores, self.stamp = self.stores + 1, stamp
        self._open(new=False)
        self.model, self.committed = dict(content), dict(content)

    @invariant()
    def the_store_follows(self) -> None:
        assert dict(self.store.scan(b"\0", b"\x80")) == self.model

    def teardown(self) -> None:
        self.store.close()
        for number, (_, snapshot, content) in enumerate(self.retained):
            assert restored_content(self.name, self.root / f"check-{number}", snapshot, self.files) == content
            assert restored_content("heap", self.root / f"heap-{number}", snapshot, self.files) == content
        shutil.rmtree(self.root)


class LmdbImages(Incremental):
    """The model of LMDB, whose copies on the host are not images."""

    name = LMDB_IMAGE
    backend = make_backend(LMDB_IMAGE)
    strategies: ClassVar[set[str]] = set()

    def fail_and_go_on_from_the_image(self) -> None:
        raise NotImplementedError


def test_lmdb_every_retained_snapshot_restores_what_was_then() -> None:
    run_state_machine_as_test(LmdbImages, settings=settings(max_examples=examples(30), stateful_step_count=25))
    assert {"native-full", "changed-keys"} <= LmdbImages.strategies


def restored_content(name: str, directory: Path, snapshot: KeyedSnapshot, files: MemoryFiles) -> dict[bytes, bytes]:
    store = make_backend(name).open(directory)
    try:
        restore_into(store, KeyedShare.of([snapshot], ALL), files, Stamp(1, "check"))
        store.begin(Stamp(1, "check"))
        return dict(store.scan(b"\0", b"\x80"))
    finally:
        store.close()


@pytest.mark.parametrize("stored", ["files", "what has changed"])
@pytest.mark.parametrize("memory", ["plenty", "none"])
def test_rocksdb_every_retained_snapshot_restores_what_was_then(
    memory: str, stored: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if memory == "none":
        monkeypatch.setattr(store_module, "_SPILL_BYTES", 500)
        monkeypatch.setattr(store_module, "_TOMBSTONE_FROM", 8)
    if stored == "what has changed":
        # However little there is: new files of so little state are always larger than what has changed.
        monkeypatch.setattr(snapshot_module, "_FEW_BYTES", 0)
        monkeypatch.setattr(snapshot_module, "_SMALL_SHARE", 0.0)
    Incremental.strategies.clear()
    # With fewer it may be that none comes to what is asked for below.
    tried = max(12, examples(12))
    run_state_machine_as_test(Incremental, settings=settings(max_examples=tried, stateful_step_count=25))
    assert ("changed-keys" in Incremental.strategies) == (stored == "what has changed")


@pytest.mark.parametrize(
    ("compaction", "access"),
    [("UNIVERSAL", "uniform"), ("LEVEL", "uniform"), ("LEVEL", "skewed")],
    ids=lambda value: str(value),
)
def test_rocksdb_fifty_checkpoints_of_one_percent_changes(tmp_path: Path, compaction: str, access: str) -> None:
    """State of 5 MB in files of 64 KB: it compacts all the time."""
    keys, chance, files = 50_000, random.Random(5), MemoryFiles()
    backend = RocksDbBackend(RocksDbOptions(file_size=64 << 10, level_base=256 << 10, compaction=compaction))
    store, stamp = backend.open(tmp_path / "store"), Stamp(0, "start")
    model = {stored_key(key): chance.randbytes(90) for key in range(keys)}
    store.load([sorted(model.items())], stamp)
    written: list[tuple[int, int]] = []
    all_files: set[str] = set()
    strategies: list[str] = []
    snapshot: KeyedSnapshot | None = None
    for number in range(1, 52):
        store.begin(stamp)
        if number > 1:
            changed = {stored_key(_pick(chance, access, keys)): chance.randbytes(90) for _ in range(keys // 100)}
            model |= changed
            store.write(sorted(changed.items()))
        request = CheckpointRequest(number, SnapshotType.CHECKPOINT, 0, 1, number, number - 1 if number > 1 else None)
        keyed = KeyedStateBackend(store, scope_of(), "rocksdb", None)
        prepared = sync_prepare(keyed, request, "counter", 0)
        stamp = Stamp(number, "n")
        store.commit(stamp)
        snapshot = composed(async_write(prepared, files, f"keyed-{number}"), snapshot)
        store.forget_changes(number)
        strategies.append(prepared.strategy)
        assert snapshot.native is not None
        assert isinstance(prepared, (PreparedImage, PreparedChanges))
        names = prepared.image.names()
        all_files |= set(names)
        new = sum(handle.size for handle in snapshot.written_by(number))
        written.append((new, prepared.image.size_of(names)))
        if number % 5 == 1:
            assert restored_content("rocksdb", tmp_path / f"at-{number}", snapshot, files) == model
        time.sleep(0.01)  # for compactions
    given_up = all_files.difference(names)
    assert len(given_up) > 60, "compactions went on"
    assert len([name for name in given_up if name.endswith(".sst")]) > 30, "of tables too"
    store.close()
    shares = [new / size for new, size in written[1:]]
    assert sum(shares) / len(shares) < 0.05, shares
    assert "native-incremental" in strategies
    if (compaction, access) == ("LEVEL", "uniform"):
        assert "changed-keys" in strategies, "compactions rewrote most of the state"


def test_rocksdb_a_chain_of_small_changes_ends_with_the_new_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not with an image of all files, which the coordinator asks for where a chain has become too long."""
    monkeypatch.setattr(snapshot_module, "_FEW_BYTES", 0)
    monkeypatch.setattr(snapshot_module, "_SMALL_SHARE", 0.0)
    files, store, stamp = MemoryFiles(), RocksDbBackend(RocksDbOptions()).open(tmp_path / "store"), Stamp(0, "start")
    store.load([[(stored_key(key), b"old" * 20) for key in range(2000)]], stamp)
    snapshot: KeyedSnapshot | None = None
    strategies: list[str] = []
    for number in range(1, 2 * MAX_CHAIN_FILES):
        store.begin(stamp)
        store.write([(stored_key(number), b"new")])
        assert snapshot is None or not full_image_due(snapshot)
        request = CheckpointRequest(number, SnapshotType.CHECKPOINT, 0, 1, number, number - 1 if number > 1 else None)
        prepared = sync_prepare(KeyedStateBackend(store, scope_of(), "rocksdb", None), request, "counter", 0)
        stamp = Stamp(number, "n")
        store.commit(stamp)
        snapshot = composed(async_write(prepared, files, f"keyed-{number}"), snapshot)
        store.forget_changes(number)
        strategies.append(prepared.strategy)
    store.close()
    assert strategies.count("native-full") == 1
    assert {"changed-keys", "native-incremental"} <= set(strategies)
    assert snapshot is not None
    content = restored_content("rocksdb", tmp_path / "again", snapshot, files)
    assert [key for key in range(2000) if content[stored_key(key)] == b"new"] == list(range(1, 2 * MAX_CHAIN_FILES))


def composed(written: KeyedSnapshot, base: KeyedSnapshot | None) -> KeyedSnapshot:
    """As the coordinator does it, which refuses what its base does not hold."""
    of_subtask = [None if one is None else SubtaskSnapshot("counter", 0, one) for one in (written, base)]
    assert of_subtask[0] is not None
    whole = compose(of_subtask[0], of_subtask[1], full_wanted=base is None).keyed
    assert whole is not None
    return whole


def _pick(chance: random.Random, access: str, keys: int) -> Any:
    """``skewed``: as Zipf's law has it, most accesses are to few keys, which are all over the key groups."""
    return chance.randrange(keys) if access == "uniform" else int(chance.paretovariate(0.8)) * 7919 % keys
