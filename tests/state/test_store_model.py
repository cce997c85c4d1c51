"""Stores against a plain model: any order of epochs, failures, steps back, and other processes."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from holdfast.errors import StoreVersionError
from holdfast.state.store import Stamp
from holdfast.testing.contracts.stores import commit_elsewhere, content
from tests.kit.properties import examples
from tests.state.stores import BACKENDS, forget_process_caches, make_backend

# Few distinct short keys, so that operations meet; and long ones around the limits of LMDB that share long prefixes.
_stems = st.sampled_from([b"", b"p" * 463, b"p" * 464, b"p" * 479, b"q" * 480, b"p" * 600])
_keys = st.builds(bytes.__add__, _stems, st.binary(max_size=2)).filter(bool)
_values = st.one_of(st.none(), st.binary(max_size=6))
_entries = st.dictionaries(_keys, _values, max_size=8)
_ranges = st.tuples(_keys, _keys).map(lambda pair: (min(pair), max(pair)))


class StoreMachine(RuleBasedStateMachine):
    """``history`` is the accepted line of epochs, from 0 on; those before ``forgotten`` need not be reachable."""

    name = "set by the subclass"

    @initialize(entries=st.dictionaries(_keys, st.binary(max_size=6), max_size=8))
    def load(self, entries: dict[bytes, bytes]) -> None:
        self.directory = Path(tempfile.mkdtemp())
        self.store = make_backend(self.name).open(self.directory)
        self.counter = 0
        start = Stamp(0, "start")
        self.store.load([sorted(entries.items())], start)
        self.history: list[tuple[Stamp, dict[bytes, bytes], set[bytes]]] = [(start, entries, set())]
        self.forgotten = 0
        self.model: dict[bytes, bytes] | None = None
        self.touched: set[bytes] = set()

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            forget_process_caches()
            shutil.rmtree(self.directory)

    @precondition(lambda self: self.model is None)
    @rule(back=st.sampled_from([0, 0, 0, 1]))
    def begin(self, back: int) -> None:
        target = max(len(self.history) - 1 - back, self.forgotten)
        stamp, entries, _ = self.history[target]
        self.store.begin(stamp)
        self.history = self.history[: target + 1]
        self.model = dict(entries)
        self.touched = set()

    @precondition(lambda self: self.model is not None)
    @rule(entries=_entries)
    def write(self, entries: dict[bytes, bytes | None]) -> None:
        self.store.write(list(entries.items()))
        for key, value in entries.items():
            if self.model.get(key) != value:
                self.touched.add(key)
            if value is None:
                self.model.pop(key, None)
            else:
                self.model[key] = value

    @precondition(lambda self: self.model is not None)
    @rule(bounds=_ranges)
    def delete_range(self, bounds: tuple[bytes, bytes]) -> None:
        self.store.delete_range(*bounds)
        for key in [key for key in self.model if bounds[0] <= key < bounds[1]]:
            del self.model[key]
            self.touched.add(key)

    @precondition(lambda self: self.model is not None)
    @rule(bounds=_ranges, keys=st.lists(_keys, max_size=5))
    def read(self, bounds: tuple[bytes, bytes], keys: list[bytes]) -> None:
        inside = sorted((key, value) for key, value in self.model.items() if bounds[0] <= key < bounds[1])
        assert list(self.store.scan(*bounds)) == inside
        assert self.store.last_key(*bounds) == (inside[-1][0] if inside else None)
        assert self.store.get_many(keys) == [self.model.get(key) for key in keys]
        assert [self.store.get(key) for key in keys] == [self.model.get(key) for key in keys]

    def _next(self) -> Stamp:
        self.counter += 1
        return Stamp(self.history[-1][0].epoch + 1, f"execution {self.counter}")

    @precondition(lambda self: self.model is not None)
    @rule(accepted=st.booleans())
    def commit(self, accepted: bool) -> None:
        stamp = self._next()
        self.store.commit(stamp)
        assert self.store.stamp() == stamp
        if accepted:
            self.history.append((stamp, self.model, self.touched))
        self.model = None

    @precondition(lambda self: self.model is not None)
    @rule()
    def rollback(self) -> None:
        self.store.rollback()
        self.model = None

    @rule()
    def forget(self) -> None:
        self.forgotten = max(self.forgotten, len(self.history) - 2)
        self.store.forget_changes(self.forgotten)

    @precondition(lambda self: self.model is None)
    @rule()
    def reopen(self) -> None:
        self.store.close()
        forget_process_caches()
        self.store = make_backend(self.name).open(self.directory)

    @precondition(lambda self: self.model is None)
    @rule(entries=_entries, accepted=st.booleans())
    def epoch_in_another_process(self, entries: dict[bytes, bytes | None], accepted: bool) -> None:
        base, before, _ = self.history[-1]
        stamp = self._next()
        # RocksDB does not survive a fork.
        method = "forkserver" if self.name == "rocksdb" else "fork"
        assert commit_elsewhere(make_backend(self.name), self.directory, base, entries, stamp.nonce, method) == stamp
        if accepted:
            after = {key: value for key, value in {**before, **entries}.items() if value is not None}
            changed = {key for key in entries if before.get(key) != entries[key]}
            self.history.append((stamp, after, changed))

    @precondition(lambda self: self.model is None)
    @rule()
    def a_stamp_that_never_was(self) -> None:
        with pytest.raises(StoreVersionError):
            self.store.begin(Stamp(self.history[-1][0].epoch, "never was"))

    @invariant()
    def the_running_transaction_equals_the_model(self) -> None:
        if getattr(self, "model", None) is not None:
            assert content(self.store) == self.model

    @invariant()
    def changes_cover_what_changed(self) -> None:
        if getattr(self, "model", None) is None:
            return
        base, then, _ = self.history[self.forgotten]
        changes = self.store.changes_since(base.epoch)
        assert changes is not None
        touched = self.touched.union(*(keys for stamp, _, keys in self.history if stamp.epoch > base.epoch))
        assert touched >= set(changes.keys)
        differing = {key for key in {*then, *self.model} if then.get(key) != self.model.get(key)}
        assert differing <= set(changes.keys)


def _follow_the_model(name: str) -> None:
    machine = type("Machine", (StoreMachine,), {"name": name})
    machine.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)
    machine.TestCase().runTest()


@pytest.mark.parametrize("name", BACKENDS)
def test_store_follows_the_model(name: str) -> None:
    _follow_the_model(name)


def test_rocksdb_follows_the_model_when_nothing_fits_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, value in {"_SPILL_BYTES": 1, "_BATCH": 2, "_REMEMBERED_BYTES": 1, "_TOMBSTONE_FROM": 3}.items():
        monkeypatch.setattr(f"holdfast.state.rocksdb.store.{limit}", value)
    _follow_the_model("rocksdb")


@pytest.mark.parametrize("name", BACKENDS)
@given(data=st.data())
@settings(max_examples=examples(30), deadline=None)
def test_many_long_keys_of_one_group_scan_in_order(name: str, data: st.DataObject) -> None:
    stems = [b"g" * 464, b"g" * 470]
    tails = data.draw(st.lists(st.integers(0, 5000), min_size=1, max_size=30, unique=True))
    long = [stem + b"%04d" % tail + b"x" * 20 for stem in stems for tail in range(0, 1200, 1 + len(tails))]
    short = [b"a", b"g" * 463, b"g" * 464, b"g" * 464 + b"z", b"h"]
    entries = {key: key[-30:] for key in [*long, *short]}
    bounds = sorted(data.draw(st.tuples(st.sampled_from(sorted(entries)), st.sampled_from(sorted(entries)))))
    with tempfile.TemporaryDirectory() as directory:
        store = make_backend(name).open(Path(directory))
        store.load([list(entries.items())], Stamp(0, "s"))
        store.begin(Stamp(0, "s"))
        inside = [key for key in sorted(entries) if bounds[0] <= key < bounds[1]]
        assert [key for key, _ in store.scan(*bounds)] == inside
        assert store.last_key(*bounds) == (inside[-1] if inside else None)
        store.close()
        forget_process_caches()
