"""Copies of stores that are damaged: what was written, or an error, and the process lives on."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pytest

from holdfast.errors import StateError, StoreDamagedError
from holdfast.state.lmdb.options import LmdbOptions
from holdfast.state.lmdb.store import LmdbStore
from holdfast.state.store import Stamp
from holdfast.testing.contracts.stores import HIGHEST, LOWEST
from tests.state.stores import forget_process_caches, make_backend

ENTRIES = [(b"\0\1key %d" % number, b"VALUE %d" % number) for number in range(300)]
LAST = Stamp(2, "n")


@pytest.fixture(params=["heap", "lmdb"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def source(name: str, tmp_path: Path) -> Path:
    """A store with some epochs."""
    store = make_backend(name).open(tmp_path / "source")
    store.load([ENTRIES[:100]], Stamp(0, "n"))
    for epoch, entries in ((1, ENTRIES[100:200]), (2, ENTRIES[200:])):
        store.begin(Stamp(epoch - 1, "n"))
        store.write(entries)
        store.commit(Stamp(epoch, "n"))
    store.close()
    forget_process_caches()
    return tmp_path / "source"


def content_of(name: str, directory: Path) -> list[tuple[bytes, bytes]]:
    store = make_backend(name).open(directory)
    try:
        store.begin(LAST)
        return list(store.scan(LOWEST, HIGHEST))
    finally:
        store.close()


def test_what_was_written_is_copied(name: str, source: Path, tmp_path: Path) -> None:
    assert make_backend(name).copy(source, tmp_path / "copy", LAST)
    assert content_of(name, tmp_path / "copy") == sorted(ENTRIES)


@pytest.mark.parametrize("value", [b"VALUE 7", b"VALUE 150", b"VALUE 299"])
def test_one_flipped_bit_in_a_value_is_noticed(name: str, source: Path, tmp_path: Path, value: bytes) -> None:
    for path in source.iterdir():
        path.write_bytes(path.read_bytes().replace(value, value[:-1] + bytes([value[-1] ^ 1])))

    with pytest.raises(StoreDamagedError, match=f"{source}.* is damaged"):
        make_backend(name).copy(source, tmp_path / "copy", LAST)


def test_a_log_in_the_place_of_another_is_noticed(tmp_path: Path) -> None:
    """Both are whole; their rows are not those of the epoch."""
    store = make_backend("heap").open(tmp_path / "source")
    store.load([ENTRIES], Stamp(0, "n"))
    for epoch in (1, 2):
        store.begin(Stamp(epoch - 1, "n"))
        store.write([(b"\0\1key 1", b"VALUE of epoch %d" % epoch)])
        store.commit(Stamp(epoch, "n"))
    store.close()
    first, second = sorted((tmp_path / "source").glob("log-*"))
    second.write_bytes(first.read_bytes())

    with pytest.raises(StoreDamagedError, match=f"{second} is damaged"):
        make_backend("heap").copy(tmp_path / "source", tmp_path / "copy", LAST)


def test_a_store_of_the_version_before_has_no_digest_and_is_not_copied(tmp_path: Path) -> None:
    """It is not called damaged."""
    store = LmdbStore(tmp_path / "source", LmdbOptions())
    store.load([ENTRIES], LAST)
    environment = store._open
    with environment.handle.begin(write=True) as txn:
        txn.delete(b"digest", db=environment.meta)
    store.close()

    assert not make_backend("lmdb").copy(tmp_path / "source", tmp_path / "copy", LAST)
    assert content_of("lmdb", tmp_path / "source") == sorted(ENTRIES)


@pytest.mark.parametrize("seed", range(12))
def test_no_damage_ends_the_process_or_is_copied(name: str, source: Path, tmp_path: Path, seed: int) -> None:
    """LMDB follows whatever its pages say, to where there is no memory, or in circles."""
    dice = random.Random(f"{name} {seed}")
    path = source / "data.mdb" if name == "lmdb" else dice.choice(sorted(source.iterdir()))
    content = bytearray(path.read_bytes())
    used = [place for place, byte in enumerate(content) if byte]
    for place in dice.sample(used, min(len(used), 1 << seed)):
        content[place] = dice.randrange(256)
    path.write_bytes(content)

    try:
        copied = make_backend(name).copy(source, tmp_path / "copy", LAST)
        found = content_of(name, tmp_path / "copy") if copied else None
    except StateError:
        return
    assert found in (None, sorted(ENTRIES))


def test_a_process_that_is_not_told_how_its_children_end_copies_nothing(tmp_path: Path) -> None:
    store = make_backend("lmdb").open(tmp_path / "source")
    store.load([ENTRIES], LAST)
    store.close()
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert not make_backend("lmdb").copy(tmp_path / "source", tmp_path / "copy", LAST)
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert not (tmp_path / "copy").exists()
