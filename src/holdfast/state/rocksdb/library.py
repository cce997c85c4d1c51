"""RocksDB itself: the package ``rocksdict``, which is an optional dependency."""

from __future__ import annotations

from typing import Any

from holdfast.errors import MissingExtraError


def load_engine() -> Any:
    """The module ``rocksdict``; an error that names the extra where it is not installed."""
    try:
        import rocksdict
    except ImportError as error:
        raise MissingExtraError("rocksdict", "rocksdb", "The state backend 'rocksdb'") from error
    return rocksdict
