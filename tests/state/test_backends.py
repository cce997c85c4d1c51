"""Backends by name: Holdfast's own, Flink's names for them, and those of other packages."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import ConfigurationError, RestoreError, StateError
from holdfast.state import backends
from holdfast.state.backends import GROUP, backend_of_images, known_backends, load_backend
from holdfast.state.heap.backend import HeapBackend
from holdfast.state.lmdb.backend import LmdbBackend
from holdfast.state.lmdb.options import LmdbOptions
from holdfast.state.store import Capabilities, Stamp
from holdfast.testing.contracts.stores import content, run_epoch
from tests.kit.installed import ACME, installed
from tests.state.stores import BACKENDS

#: Beside the one that works.
BROKEN = {
    "acme-text": "tests.state.test_backends:not_a_backend",
    "acme-gone": "acme_streams.backend:Gone",
    "acme-unbounded": "tests.state.test_backends:Unbounded",
}


def not_a_backend(options: Mapping[str, Any]) -> str:
    return "just text"


class Unbounded(HeapBackend):
    capabilities = Capabilities(bounded_memory=True)

    def __init__(self, options: Mapping[str, Any]) -> None: ...


@pytest.fixture
def acme(tmp_path: Path) -> Iterator[None]:
    """Another project's package is installed."""
    with installed(ACME, tmp_path / "installed", holdfast_state_backends=BROKEN):
        yield


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
    backend = load_backend("acme", {"state.backend.acme.cache-limit": "7"})
    assert (backend.name, backend.cache_limit) == ("acme", 7)
    assert backend.capabilities == Capabilities(native_images=True, several_processes=True, bounded_memory=True)
    assert backend_of_images("acme").name == "acme"
    store = backend.open(tmp_path / "store")
    store.load([], Stamp(0, "s"))
    assert run_epoch(store, Stamp(0, "s"), {b"k": b"v"}) == store.stamp()
    store.close()


@pytest.mark.usefixtures("acme")
def test_broken_entry_points_say_so() -> None:
    with pytest.raises(ConfigurationError, match=r"'acme-gone' cannot be loaded from acme_streams\.backend:Gone"):
        load_backend("acme-gone", {})
    with pytest.raises(ConfigurationError, match="expected a StateBackend"):
        load_backend("acme-text", {})
    with pytest.raises(ConfigurationError, match=r"'acme-unbounded' .* declares bounded memory and has no cache_limit"):
        load_backend("acme-unbounded", {})


def test_it_is_not_there_without_its_package() -> None:
    with pytest.raises(ConfigurationError, match="no state backend 'acme'"):
        load_backend("acme", {})


@pytest.mark.parametrize("engine", ["acme", "heap"])
def test_an_image_that_nobody_here_reads_says_what_to_install(engine: str) -> None:
    with pytest.raises(RestoreError, match=f"database '{engine}', which none .*entry point group '{GROUP}'"):
        backend_of_images(engine)


def test_capabilities_are_a_frozen_value() -> None:
    declared = {name: load_backend(name, {}).capabilities for name in BACKENDS}
    assert declared == {
        "heap": Capabilities(several_processes=True),
        "lmdb": Capabilities(native_images=True, several_processes=True, bounded_memory=True),
        "rocksdb": Capabilities(native_images=True, bounded_memory=True),
    }
    with pytest.raises(FrozenInstanceError):
        declared["heap"].native_images = True  # type: ignore[misc]


def test_restoring_names_no_engine() -> None:
    """So that an engine from outside is as good as one of these."""
    state = Path(backends.__file__).parent
    for module in state.glob("*.py"):
        tree = ast.parse(module.read_text())
        names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        engines = tuple(f"holdfast.state.{name}" for name in BACKENDS)
        assert not [name for name in names if name.startswith(engines)], module.name
