"""State backends by name: Holdfast's own and those that other packages offer as entry points."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from holdfast.errors import ConfigurationError, RestoreError
from holdfast.state.store import StateBackend

GROUP = "holdfast.state_backends"

_BUILT_IN = {
    "heap": EntryPoint("heap", "holdfast.state.heap.backend:HeapBackend.from_options", GROUP),
    "lmdb": EntryPoint("lmdb", "holdfast.state.lmdb.backend:LmdbBackend.from_options", GROUP),
    "rocksdb": EntryPoint("rocksdb", "holdfast.state.rocksdb.backend:RocksDbBackend.from_options", GROUP),
}
#: Flink's names. Which checkpoint storage the older ones stand for is decided where the configuration is read.
_ALIASES = {"hashmap": "heap", "jobmanager": "heap", "memory": "heap", "filesystem": "heap"}


def known_backends() -> list[str]:
    """All names that ``load_backend`` takes."""
    return sorted({*_BUILT_IN, *_ALIASES, *entry_points(group=GROUP).names})


def load_backend(name: str, options: Mapping[str, Any]) -> StateBackend:
    """The backend of a name, with the job's configuration.

    Own backends first, then entry points of the group ``holdfast.state_backends``: callables that take the
    options. ConfigurationError, listing the known names, for any other.
    """
    wanted = name.strip().lower()
    entry_point = _find(_ALIASES.get(wanted, wanted))
    if entry_point is None:
        raise ConfigurationError(
            f"There is no state backend '{name}'. Known are {', '.join(known_backends())}. Another one is found when a "
            f"package that offers it (entry point group '{GROUP}') is installed on the driver and the executors."
        )
    return _make(entry_point, options)


def backend_of_images(engine: str) -> StateBackend:
    """The backend that reads native images of an engine: that of its name, without options. RestoreError where none is
    installed, or none that has such images.
    """
    entry_point = _find(engine)
    backend = None if entry_point is None else _make(entry_point, {})
    if backend is None or not backend.capabilities.native_images:
        raise RestoreError(
            f"The snapshot holds files of the database '{engine}', which none of the state backends here reads "
            f"({', '.join(known_backends())}). Install the package that wrote it (entry point group '{GROUP}') on the "
            "driver and the executors. Or restore it where it was written, and take a savepoint in the canonical "
            "format there."
        )
    return backend


def _find(name: str) -> EntryPoint | None:
    return _BUILT_IN.get(name) or next(iter(entry_points(group=GROUP, name=name)), None)


def _make(entry_point: EntryPoint, options: Mapping[str, Any]) -> StateBackend:
    try:
        factory: Callable[[Mapping[str, Any]], Any] = entry_point.load()
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(
            f"The state backend '{entry_point.name}' cannot be loaded from {entry_point.value}: {error}."
        ) from error
    backend = factory(options)
    if not isinstance(backend, StateBackend):
        raise ConfigurationError(
            f"The entry point '{entry_point.name}' ({entry_point.value}) gave {backend!r:.90}; expected a StateBackend."
        )
    if backend.capabilities.bounded_memory and backend.cache_limit is None:
        raise ConfigurationError(
            f"The state backend '{entry_point.name}' ({entry_point.value}) declares bounded memory and has no "
            "cache_limit, so that its caches would grow with the state. Give it a limit, or do not declare that."
        )
    return backend
