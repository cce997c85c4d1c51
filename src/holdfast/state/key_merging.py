"""The state of keys that became one, merged: values by the program's function, lists one behind the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from holdfast.errors import StateMigrationError
from holdfast.state.handles import StateMeta
from holdfast.state.key_migration import Merge
from holdfast.state.layout import number_bytes, read_id
from holdfast.state.registry import TIMERS
from holdfast.state.serializers import old_values
from holdfast.state.ttl_cells import STAMP

#: The state in which windows that merge are kept: Flink's name.
MERGING_WINDOW_SET = "merging-window-set"
_CHUNK_NUMBER = 8

Entry = tuple[bytes, bytes]


class KeyMerging:
    """Merges the values of old keys that became one new key, which errors name. Values are of the stored version."""

    def __init__(self, operator: str, key: str, states: Mapping[int, StateMeta], merge: Merge) -> None:
        self._where = f"operator '{operator}', key {key}"
        self._states = states
        self._merge = merge

    def merged(self, olds: list[list[Entry]]) -> Iterator[tuple[bytes, bytes | None]]:
        """What to write so that the key has the state of all ``olds``, whose entries come under the new key. Timers are
        not there: those of all are the key's, and the same one is one.
        """
        written: dict[bytes, bytes | None] = {}
        lists: dict[bytes, list[bytes]] = {}
        for entries in olds:
            for stored, data in entries:
                meta = self._states[read_id(stored)]
                if meta.kind == TIMERS:
                    continue
                if meta.kind == "list":
                    written[stored] = None
                    lists.setdefault(stored[:-_CHUNK_NUMBER], []).append(data)
                else:
                    known = written.get(stored)
                    written[stored] = data if known is None else self._both(meta, known, data)
        for head, chunks in lists.items():
            written.update({head + number_bytes(number): chunk for number, chunk in enumerate(chunks)})
        return iter(written.items())

    def _both(self, meta: StateMeta, first: bytes, second: bytes) -> bytes:
        if meta.name == MERGING_WINDOW_SET:
            raise StateMigrationError(
                f"The keys of {self._where}, have windows that merge, such as sessions. Those of two keys cannot be "
                "those of one: give them different keys."
            )
        serializer = old_values(meta.serializers["value"])
        start = STAMP if meta.ttl else 0
        values = [serializer.decode(data[start:]) if data[start:] else None for data in (first, second)]
        try:
            value = self._merge(meta.name, *values)
            encoded = b"" if value is None and meta.kind == "map" else _encoded(serializer.encode, value)
        except Exception as error:
            raise StateMigrationError(
                f"State '{meta.name}' (version {meta.version}) of {self._where}: the merge function of "
                f"migrate_key_from(...) failed: {type(error).__name__}: {error}. Nothing is lost: the snapshot "
                "that was to be restored is as it was."
            ) from error
        return max(first[:start], second[:start]) + encoded


def _encoded(encode: Callable[[Any], bytes], value: Any) -> bytes:
    if value is None:
        raise ValueError("it gave None; expected the value of the key that both became")
    return encode(value)
