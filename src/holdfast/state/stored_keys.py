"""Which keys have a state: read from the store, a page at a time, so that each key's state may be changed meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast.state.keyed_state import VOID
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.keys import KeyCodec
from holdfast.state.layout import HEAD_LENGTH, group_bytes, id_bytes, prefix_end, read_sized
from holdfast.state.store import LocalStore
from holdfast.state.ttl_cells import STAMP

_PAGE = 1024


def stored_keys(
    store: LocalStore, key_groups: KeyGroupRange, state_id: int, codec: KeyCodec, expired_at: bytes | None = None
) -> Iterator[Any]:
    """The keys that have an entry of the state in the default namespace, in the order of their stored form.

    With a time to live, those entries count that were accessed after ``expired_at``.
    """
    for group in key_groups:
        position = group_bytes(group) + id_bytes(state_id)
        end = prefix_end(position)
        while page := _heads(store, position, end, expired_at):
            position = prefix_end(page[-1])
            for head in page:
                key, namespace_at = read_sized(head, HEAD_LENGTH)
                if head[namespace_at:] == VOID:
                    yield codec.decode(key)


def _heads(store: LocalStore, start: bytes, end: bytes, expired_at: bytes | None) -> list[bytes]:
    """The next distinct heads. A list and a map have several entries under one."""
    heads: list[bytes] = []
    for stored, value in store.scan(start, end):
        if heads and stored.startswith(heads[-1]):
            continue
        if expired_at is not None and value[:STAMP] <= expired_at:
            continue
        if len(heads) == _PAGE:
            break
        _, namespace_at = read_sized(stored, HEAD_LENGTH)
        _, suffix_at = read_sized(stored, namespace_at)
        heads.append(stored[:suffix_at])
    return heads
