"""Backends by name: Holdfast's own, Flink's names for them, and those of other packages."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.errors import ConfigurationError, StateError
from holdfast.state.backends import known_backends, load_backend
from holdfast.state.heap.backend import HeapBackend
from holdfast.state.lmdb.backend import LmdbBackend
from holdfast.state.lmdb.options import LmdbOptions
from holdfast.state.store import Stamp
from tests.state.stores import content, run_epoch

PACKAGE = Path(__file__).parent / "third_party_backend"
ENTRY_POINTS = """[holdfast.state_backends]
acme = acme_backend:AcmeBackend
acme-text = acme_backend:not_a_backend
acme-gone = acme_backend:Gone
"""


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package as an installer leaves it: its module, and its metadata beside it."""
    shutil.copy(PACKAGE / "acme_backend.py", tmp_path)
    info = tmp_path / "acme_backend-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-backend\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("acme_backend", None)


@pytest.mark.parametrize("name", ["heap", "Heap", "hashmap", "jobmanager", "filesystem", " heap "])
def test_names_of_the_heap_backend(name: str) -> None:
    assert isinstance(load_backend(name, {}), HeapBackend)


def test_the_lmdb_backend_takes_its_options() -> None:
    options = {"state.backend.lmdb.map-size": "1048576", "state.backend.lmdb.cache-limit": 5, "other.key": "x"}
    backend = load_backend("lmdb", options)
    assert backend == LmdbBackend(LmdbOptions(map_size=1 << 20, cache_limit=5))
    assert backend.cache_limit == 5
    assert load_backend("lmdb", backend.options()) == backend


@pytest.mark.parametrize("value", ["many", 0, -3, None])
def test_options_are_checked(value: object) -> None:
    with pytest.raises(ConfigurationError, match="map-size"):
        load_backend("lmdb", {"state.backend.lmdb.map-size": value})


def test_unknown_options_are_named() -> None:
    with pytest.raises(ConfigurationError, match=r"'state.backend.lmdb.mapsize'.*state.backend.lmdb.map-size"):
        load_backend("lmdb", {"state.backend.lmdb.mapsize": 1})


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match=r"no state backend 'rocks'. Known are .*heap.*lmdb"):
        load_backend("rocks", {})


def test_a_full_map_says_what_to_do(tmp_path: Path) -> None:
    store = load_backend("lmdb", {"state.backend.lmdb.map-size": 200_000}).open(tmp_path)
    store.load([], Stamp(0, "s"))
    store.begin(Stamp(0, "s"))
    with pytest.raises(StateError, match=r"state\.backend\.lmdb\.map-size"):
        store.write([(b"%d" % number, b"x" * 1000) for number in range(1000)])
    store.rollback()
    store.begin(Stamp(0, "s"))
    assert content(store) == {}
    store.close()


@pytest.mark.usefixtures("acme")
def test_a_backend_of_another_package(tmp_path: Path) -> None:
    assert "acme" in known_backends()
    backend = load_backend("acme", {"acme.greeting": "good day"})
    assert (backend.name, backend.greeting, backend.cache_limit) == ("acme", "good day", 7)
    store = backend.open(tmp_path / "store")
    store.load([], Stamp(0, "s"))
    run_epoch(store, Stamp(0, "s"), {b"k": b"v"})
    assert backend.opened == 1


@pytest.mark.usefixtures("acme")
def test_broken_entry_points_say_so() -> None:
    with pytest.raises(ConfigurationError, match="'acme-gone' cannot be loaded from acme_backend:Gone"):
        load_backend("acme-gone", {})
    with pytest.raises(ConfigurationError, match="expected a StateBackend"):
        load_backend("acme-text", {})


def test_it_is_not_there_without_its_package() -> None:
    with pytest.raises(ConfigurationError, match="no state backend 'acme'"):
        load_backend("acme", {})
