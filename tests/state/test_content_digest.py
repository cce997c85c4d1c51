"""The digest that follows the entries of a store."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import StoreDamagedError
from holdfast.state.content_digest import NOTHING, with_change, with_entries, without_entries
from holdfast.state.digested_file import with_digest, without_digest
from holdfast.state.lmdb.meta import content_digest, stored_digest
from holdfast.state.lmdb.options import LmdbOptions
from holdfast.state.lmdb.store import LmdbStore
from holdfast.state.store import Layer, Stamp

KEYS = st.binary(min_size=1, max_size=5) | st.sampled_from([b"k" * 480, b"k" * 490, b"k" * 479 + b"x" * 40])
ENTRIES = st.dictionaries(KEYS, st.none() | st.binary(max_size=6), max_size=8)


@given(st.lists(ENTRIES, max_size=5))
def test_the_way_does_not_matter(changes: list[dict[bytes, bytes | None]]) -> None:
    content: dict[bytes, bytes] = {}
    digest = NOTHING
    for change in changes:
        keys = list(change)
        digest = with_change(digest, keys, list(change.values()), [content.get(key) for key in keys])
        content = {key: value for key, value in {**content, **change}.items() if value is not None}

    assert digest == with_entries(NOTHING, content, content.values())
    assert without_entries(digest, content, content.values()) == NOTHING


def test_every_flipped_bit_is_noticed() -> None:
    content = {b"key %d" % number: b"value %d" % number for number in range(3)}
    digest = with_entries(NOTHING, content, content.values())
    for place in range(7 * 8):
        value = bytearray(content[b"key 1"])
        value[place // 8] ^= 1 << place % 8
        assert with_entries(NOTHING, content, {**content, b"key 1": bytes(value)}.values()) != digest


@given(data=st.binary(max_size=40), place=st.integers(0, 47))
def test_every_changed_byte_of_a_file_is_noticed(data: bytes, place: int) -> None:
    stored = with_digest(data)
    assert without_digest(stored, "here") == data
    changed = bytearray(stored)
    changed[place % len(stored)] ^= 1
    for damaged in (bytes(changed), stored[:-1], b""):
        with pytest.raises(StoreDamagedError, match="here is damaged"):
            without_digest(damaged, "here")


def test_a_file_in_the_place_of_another_is_noticed() -> None:
    stored = with_digest(b"data", "log-1")
    assert without_digest(stored, "here", "log-1") == b"data"
    with pytest.raises(StoreDamagedError, match="here is damaged"):
        without_digest(stored, "here", "log-2")


class Epochs:
    """A store of LMDB, epoch by epoch."""

    def __init__(self, directory: Path) -> None:
        self.store = LmdbStore(directory, LmdbOptions(map_size=1 << 24))
        self.store.load([], Stamp(0, "n"))
        self.epoch = 0

    def run(self, entries: dict[bytes, bytes | None], deleted: tuple[bytes, bytes] | None) -> None:
        self.store.begin(Stamp(self.epoch, "n"))
        self.store.write(list(entries.items()))
        if deleted is not None:
            self.store.delete_range(*deleted)
        self.epoch += 1
        self.store.commit(Stamp(self.epoch, "n"))

    def digests(self) -> tuple[int | None, int | None]:
        """The one that is stored, and the one of what is there."""
        environment = self.store._open
        with environment.handle.begin() as txn:
            return stored_digest(txn, environment.meta), content_digest(txn, environment.data)


@given(st.lists(st.tuples(ENTRIES, st.none() | st.tuples(KEYS, KEYS)), min_size=1, max_size=4))
def test_a_store_has_the_digest_of_its_rows(
    tmp_path_factory: pytest.TempPathFactory, epochs: list[tuple[dict[bytes, bytes | None], tuple[bytes, bytes] | None]]
) -> None:
    """Behind each commit, each step back, and what is laid on an image."""
    made = Epochs(tmp_path_factory.mktemp("store"))
    seen = []
    for entries, deleted in epochs:
        made.run(entries, deleted)
        stored, found = made.digests()
        assert stored == found
        seen.append(stored)
    if len(seen) > 1:
        made.epoch -= 1
        made.run({}, None)
        assert made.digests() == (seen[-2], seen[-2])
    layers = [Layer([list(entries.items())], [deleted] if deleted else []) for entries, deleted in islice(epochs, 2)]
    made.store._replace(layers, Stamp(9, "n"), ())
    stored, found = made.digests()
    assert stored == found
    made.store.close()
