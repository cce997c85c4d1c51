"""Options of the LMDB backend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from holdfast.errors import ConfigurationError

PREFIX = "state.backend.lmdb."


@dataclass(frozen=True, slots=True)
class LmdbOptions:
    """``map_size``: the most bytes that one store may grow to; address space, not memory nor disk.

    ``cache_limit``: entries that the cache of live objects keeps between epochs, per subtask.
    """

    map_size: int = 1 << 40
    cache_limit: int = 200_000

    @classmethod
    def from_mapping(cls, options: Mapping[str, Any]) -> LmdbOptions:
        """Take ``state.backend.lmdb.map-size`` and ``.cache-limit`` out of a job's configuration; ignore other keys."""
        known = {PREFIX + field.replace("_", "-"): field for field in cls.__slots__}
        values: dict[str, int] = {}
        for key, value in options.items():
            if key in known:
                values[known[key]] = _positive(key, value)
            elif key.startswith(PREFIX):
                raise ConfigurationError(f"Unknown option '{key}' of the lmdb backend; it has {sorted(known)}.")
        return cls(**values)

    def as_mapping(self) -> dict[str, int]:
        return {PREFIX + field.replace("_", "-"): value for field, value in asdict(self).items()}


def _positive(key: str, value: Any) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = 0
    if number <= 0:
        raise ConfigurationError(f"The option '{key}' is {value!r}; it must be a whole number above 0.")
    return number
