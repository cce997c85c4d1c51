"""What is particular to the rocksdb backend: hand-over, epochs beyond memory, its own memory and options."""

from __future__ import annotations

import multiprocessing
import os
import resource
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from holdfast.common import Configuration
from holdfast.common.backend_options import ROCKSDB
from holdfast.common.settings_parser import parse_settings
from holdfast.errors import ConfigurationError, MissingExtraError, StateError, StoreVersionError
from holdfast.state.backends import load_backend
from holdfast.state.epoch_log import encode_record
from holdfast.state.rocksdb import databases, store
from holdfast.state.rocksdb.backend import RocksDbBackend
from holdfast.state.rocksdb.epochs import EpochFiles
from holdfast.state.rocksdb.host_lock import HostLock
from holdfast.state.rocksdb.memory import memory_of
from holdfast.state.rocksdb.options import PREFIX, PROFILES, RocksDbOptions
from holdfast.state.store import Stamp
from holdfast.testing.contracts.stores import commit_elsewhere, content, run_epoch
from tests.state.stores import fresh_store, make_backend


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every few entries are more than fits in memory."""
    for limit, value in {"_SPILL_BYTES": 1000, "_BATCH": 3, "_REMEMBERED_BYTES": 2000, "_TOMBSTONE_FROM": 5}.items():
        monkeypatch.setattr(store, limit, value)


# -- epochs beyond memory ----------------------------------------------------------------------------------------------


def changed_a_lot(directory: Path) -> tuple[RocksDbBackend, Stamp, dict[bytes, bytes]]:
    """A store whose transaction died after most of its changes were applied."""
    before = {b"%03d" % n: b"old" for n in range(0, 200, 2)}
    victim, start = fresh_store("rocksdb", directory, before)
    victim.begin(start)
    for n in range(200):
        victim.write([(b"%03d" % n, b"new"), (b"%03d" % (n // 2), b"twice")])
    victim.delete_range(b"020", b"080")
    assert len(list((directory / "records").iterdir())) == 1, "nothing was applied early"
    assert victim._db.get(b"100") != b"old"  # type: ignore[attr-defined]  # of RocksDB
    return victim, start, before


@pytest.mark.usefixtures("tiny")
def test_an_epoch_that_does_not_fit_is_rolled_back(tmp_path: Path) -> None:
    victim, start, before = changed_a_lot(tmp_path)
    victim.rollback()
    victim.begin(start)
    assert content(victim) == before


@pytest.mark.usefixtures("tiny")
def test_an_epoch_that_does_not_fit_and_died_is_undone_by_the_next(tmp_path: Path) -> None:
    victim, start, before = changed_a_lot(tmp_path)
    del victim  # without a rollback, as a crash leaves it
    after = RocksDbBackend().open(tmp_path)
    assert after.stamp() == start
    after.begin(start)
    assert content(after) == before
    assert list((tmp_path / "records").iterdir()) == []


@pytest.mark.usefixtures("tiny")
def test_an_epoch_that_does_not_fit_is_committed_and_stepped_back_over(tmp_path: Path) -> None:
    victim, start, before = changed_a_lot(tmp_path)
    expected = content(victim)
    assert set(victim.changes_since(0).keys) == {b"%03d" % n for n in range(200)}
    victim.commit(Stamp(1, "n"))
    victim.begin(Stamp(1, "n"))
    assert content(victim) == expected
    assert set(victim.changes_since(0).keys) == {b"%03d" % n for n in range(200)}
    victim.begin(start)
    assert content(victim) == before


def test_a_piece_of_a_record_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    """A disk that gets full takes a part of it. The pieces behind it are to be found all the same."""
    files = EpochFiles(tmp_path / "records")
    files.refresh()
    pieces = [
        encode_record(Stamp(0, "start"), Stamp(1, "running"), [], [key], [b"v" * 100]) for key in (b"1", b"2", b"3")
    ]
    files.add_piece(pieces[0])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(pieces[0]) + 50, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            files.add_piece(pieces[1])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    files.add_piece(pieces[2])
    assert [piece.keys for piece in files.pieces(None)] == [[b"1"], [b"3"]]


def _die(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_process_that_dies_between_record_and_commit_leaves_the_stamp_before(tmp_path: Path, monkeypatch) -> None:
    one, start = fresh_store("rocksdb", tmp_path, {b"a": b"1"})
    one.begin(start)
    one.write([(b"a", b"2")])
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(store.RocksDbStore, "_apply", _die)
        one.commit(Stamp(1, "died"))
    del one
    after = RocksDbBackend().open(tmp_path)
    after.begin(start)
    assert content(after) == {b"a": b"1"}
    assert after.changes_since(0).keys == []


def test_a_step_back_that_was_cut_off_is_finished(tmp_path: Path, monkeypatch) -> None:
    one, start = fresh_store("rocksdb", tmp_path, {b"a": b"1"})
    first = run_epoch(one, start, {b"a": b"2", b"b": b"2"})
    second = run_epoch(one, first, {b"a": b"3"})
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(store.EpochFiles, "drop", _die)
        one.begin(start)
    with pytest.raises(StoreVersionError):
        one.begin(second)
    one.begin(start)
    assert content(one) == {b"a": b"1"}


def test_many_deleted_keys_are_one_tombstone(tmp_path: Path) -> None:
    before = {b"%06d" % n: b"v" for n in range(10_000)}
    one, start = fresh_store("rocksdb", tmp_path, before)
    one.begin(start)
    one.write([(b"005000x", b"added first")])
    one.delete_range(b"000100", b"009900")
    one.write([(b"005000", b"again")])
    left = {key: value for key, value in before.items() if not b"000100" <= key < b"009900"} | {b"005000": b"again"}
    assert content(one) == left
    assert one.last_key(b"000200", b"009900") == b"005000"
    one.commit(Stamp(1, "n"))
    one.begin(Stamp(1, "n"))
    assert content(one) == left
    one.begin(start)
    assert content(one) == before


# -- processes ---------------------------------------------------------------------------------------------------------


def _in_transaction(directory: Path, base: Stamp, told: Connection) -> None:
    other = RocksDbBackend().open(directory)
    other.begin(base)
    other.write([(b"k", b"other")])
    told.send("begun")
    told.recv()
    other.commit(Stamp(base.epoch + 1, "other"))
    told.send("committed")
    told.recv()


def test_an_idle_process_hands_over_and_a_busy_one_is_waited_for(tmp_path: Path) -> None:
    one, start = fresh_store("rocksdb", tmp_path)
    first = run_epoch(one, start, {b"k": b"one"})  # idle now, and still open
    here, there = multiprocessing.Pipe()
    other = multiprocessing.get_context("spawn").Process(target=_in_transaction, args=(tmp_path, first, there))
    other.start()
    try:
        assert here.poll(60) and here.recv() == "begun"
        here.send("commit in a moment")
        with pytest.raises(StoreVersionError, match=r"execution n.*execution other"):
            one.begin(Stamp(2, "n"))
        assert here.poll(0) and here.recv() == "committed"
        one.begin(Stamp(2, "other"))
        assert one.get(b"k") == b"other"
    finally:
        here.send("end")
        other.join(60)
    assert other.exitcode == 0


def test_a_lock_that_is_not_given_up_names_its_holder(tmp_path: Path) -> None:
    one, start = fresh_store("rocksdb", tmp_path)
    one.begin(start)
    child = os.fork()
    if child == 0:
        try:
            HostLock(tmp_path).acquire(0.2)
        except StateError as error:
            os._exit(7 if str(os.getppid()) in str(error) else 8)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_request_of_the_holder_itself_is_none(tmp_path: Path) -> None:
    lock = HostLock(tmp_path)
    lock.acquire(1)
    os.write(lock.fileno(), os.getpid().to_bytes(8, sys.byteorder) * 3)
    assert not lock.wanted()
    os.write(lock.fileno(), (1).to_bytes(8, sys.byteorder))
    assert lock.wanted() and not lock.wanted()
    lock.release()


def test_a_forked_child_is_told_that_it_cannot_use_it(tmp_path: Path) -> None:
    one, start = fresh_store("rocksdb", tmp_path, {b"a": b"1"})
    child = os.fork()
    if child == 0:
        try:
            RocksDbBackend().open(tmp_path).stamp()
        except StateError as error:
            os._exit(7 if "spawn" in str(error) else 8)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    one.begin(start)
    assert content(one) == {b"a": b"1"}


def test_what_moved_here_is_flushed_after_its_epoch_and_what_stays_is_not(tmp_path: Path) -> None:
    def flushed(seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if one._database._handle.property_int_value("rocksdb.num-entries-active-mem-table") == 0:
                return True
            time.sleep(0.01)
        return False

    one, start = fresh_store("rocksdb", tmp_path)
    one.close()
    one = RocksDbBackend().open(tmp_path)
    first = run_epoch(one, start, {b"a": b"1"})
    assert flushed(20)
    run_epoch(one, first, {b"a": b"2"})
    assert not flushed(0.5)


def test_compactions_that_are_overdue_end_before_a_hand_over(tmp_path: Path, monkeypatch) -> None:
    looks = iter([True, True, False])
    monkeypatch.setattr(databases.Database, "_debt", staticmethod(lambda handle: next(looks)))
    one, start = fresh_store("rocksdb", tmp_path)
    commit_elsewhere(make_backend("rocksdb"), tmp_path, start, {b"a": b"1"}, "other", "forkserver")
    assert next(looks, "all taken") == "all taken"
    assert one.stamp() == Stamp(1, "other")


def test_a_directory_that_was_removed_under_an_open_database(tmp_path: Path) -> None:
    import shutil

    one, start = fresh_store("rocksdb", tmp_path / "s", {b"a": b"1"})
    run_epoch(one, start, {b"a": b"2"})
    shutil.rmtree(tmp_path / "s")
    one.close()
    again = RocksDbBackend().open(tmp_path / "s")
    assert again.stamp() is None


def test_two_transactions_in_one_process(tmp_path: Path) -> None:
    one, start = fresh_store("rocksdb", tmp_path)
    one.begin(start)
    with pytest.raises(StateError, match="already has a transaction in this process"):
        RocksDbBackend().open(tmp_path).begin(start)


def test_the_last_store_closes_the_database(tmp_path: Path) -> None:
    one, _ = fresh_store("rocksdb", tmp_path)
    other = RocksDbBackend().open(tmp_path)
    one.close()
    assert tmp_path.resolve() in databases._process.databases
    other.close()
    assert tmp_path.resolve() not in databases._process.databases
    lock = HostLock(tmp_path)
    lock.acquire(0)
    lock.release()


# -- memory and options ------------------------------------------------------------------------------------------------


def test_databases_of_a_process_share_a_budget(tmp_path: Path) -> None:
    settings = RocksDbOptions(per_slot=12 << 20)
    stores = [RocksDbBackend(settings).open(tmp_path / str(n)) for n in range(3)]
    value = os.urandom(1000)
    for one in stores:
        entries = ([(b"%06d" % (at + n), value) for n in range(1000)] for at in range(0, 12_000, 1000))
        one.load(entries, Stamp(0, "s"))
        one.begin(Stamp(0, "s"))
        one.write([(b"%06d" % n, value[::-1]) for n in range(0, 12_000, 3)])
        assert sum(1 for _ in one.scan(b"", b"\xff")) == 12_000
        one.commit(Stamp(1, "s"))
    memory = memory_of(settings)
    assert memory.buffers.get_usage() <= 1.5 * memory.buffers.get_buffer_size()
    assert memory.cache.get_usage() <= 12 << 20
    for one in stores:
        one.close()


def test_unmanaged_databases_have_their_own() -> None:
    settings = RocksDbOptions(managed=False)
    assert memory_of(settings) is not memory_of(settings)
    assert memory_of(RocksDbOptions()) is memory_of(RocksDbOptions(bloom_filter=False))


@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_opens(profile: str, tmp_path: Path) -> None:
    backend = RocksDbBackend(RocksDbOptions(profile=profile, partitioned=True, managed=profile != "DEFAULT"))
    one = backend.open(tmp_path)
    one.load([[(b"a", b"1")]], Stamp(0, "s"))
    run_epoch(one, Stamp(0, "s"), {b"b": b"2"})
    one.begin(Stamp(1, "n"))
    assert content(one) == {b"a": b"1", b"b": b"2"}
    one.close()


def test_options_come_from_the_configuration_in_flinks_words() -> None:
    configuration = Configuration.from_dict(
        {
            "state.backend.type": "rocksdb",
            PREFIX + "predefined-options": "flash_ssd_optimized",
            PREFIX + "memory.fixed-per-slot": "64 mb",
            PREFIX + "memory.managed": "FALSE",
            PREFIX + "thread.num": "3",
            PREFIX + "timer-service.factory": "HEAP",
        }
    )
    chosen = parse_settings(configuration).backend
    backend = load_backend(chosen.name, chosen.options)
    expected = RocksDbOptions("FLASH_SSD_OPTIMIZED", managed=False, per_slot=64 << 20, background_jobs=3)
    assert backend == RocksDbBackend(expected)
    assert backend.settings.tuned() == PROFILES["FLASH_SSD_OPTIMIZED"].__class__(3, 16 << 20, 64 << 20, 4096, 512 << 10)
    assert load_backend("rocksdb", backend.options()) == backend


def test_the_documented_defaults_are_the_backends() -> None:
    documented = {option.key: option.default for option in ROCKSDB if option.default is not None}
    assert RocksDbOptions.from_mapping(documented) == RocksDbOptions()
    assert RocksDbOptions().as_mapping() == documented
    everything = {option.key: option.default or 5 << 20 for option in ROCKSDB}
    assert set(RocksDbOptions.from_mapping(everything).as_mapping()) == {option.key for option in ROCKSDB}


def test_mistakes_in_options() -> None:
    with pytest.raises(ConfigurationError, match=r"memory\.fixed-per-slots' does not exist; the nearest one is"):
        parse_settings(Configuration.from_dict({PREFIX + "memory.fixed-per-slots": "1 gb"}))
    with pytest.raises(ConfigurationError, match="FLASH_SSD_OPTIMIZED"):
        parse_settings(Configuration.from_dict({PREFIX + "predefined-options": "FAST"}))
    with pytest.raises(ConfigurationError, match=r"fixed-per-slot' is the text '64 mb'"):
        load_backend("rocksdb", {PREFIX + "memory.fixed-per-slot": "64 mb"})
    with pytest.raises(ConfigurationError, match="'FAST'; expected one of DEFAULT"):
        load_backend("rocksdb", {PREFIX + "predefined-options": "FAST"})


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rocksdict", None)
    with pytest.raises(MissingExtraError, match=r"holdfast\[rocksdb\]"):
        load_backend("rocksdb", {})
