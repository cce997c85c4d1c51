"""Keys of no declared type in the tables of savepoints."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from holdfast.state.keys import KeyCodec


def readable(codec: KeyCodec, keys: Sequence[bytes | None]) -> pa.Array:
    """Keys of no declared type as text, for people."""

    def text_of(key: Any) -> str:
        return key if isinstance(key, str) else reprlib.repr(key) if isinstance(key, bytes) else str(key)

    return pa.array([None if key is None else text_of(codec.decode(key)) for key in keys], pa.string())
