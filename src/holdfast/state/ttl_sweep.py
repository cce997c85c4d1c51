"""A walk over all entries of a state, some of them in each epoch, that removes what has expired.

It is how state of keys that nobody asks for again goes away. Removals are changes of the epoch like any other: they are
undone, snapshotted and committed with it. Where the walk has come to is a local entry of the store, so that whichever
process runs the next epoch goes on from there.
"""

from __future__ import annotations

from itertools import islice

from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.layout import SWEEPS, group_bytes, id_bytes, prefix_end, read_group, read_time, time_bytes
from holdfast.state.store import LocalStore
from holdfast.state.ttl_cells import STAMP, deadline
from holdfast.state.ttl_config import StateTtlConfig

#: A walk begins no sooner than this part of the time to live after the one before: what is there by then has expired
#: for a short time, compared to how long it lived.
_PAUSE = 4
#: A look into a key group, which may be empty, counts as checking so many entries.
_A_LOOK = 4


class Sweep:
    """The walk over one state of one subtask, key group by key group."""

    def __init__(self, state_id: int, key_groups: KeyGroupRange, config: StateTtlConfig) -> None:
        self._id = id_bytes(state_id)
        self._key_groups = key_groups
        self._config = config

    def run(self, store: LocalStore, now: int, entries: int) -> list[bytes]:
        """Check up to so many entries, remove the expired ones, and give their stored keys."""
        began, position = self._progress(store)
        if not position:
            if 0 <= now - began < self._config.milliseconds // _PAUSE:
                return []
            began, position = now, group_bytes(self._key_groups.start) + self._id
        expired_at = deadline(self._config, now)
        expired: list[bytes] = []
        while entries > 0 and position:
            page = list(islice(store.scan(position, prefix_end(position[: len(self._id) * 2])), entries))
            expired += [key for key, value in page if value[:STAMP] <= expired_at]
            position = page[-1][0] + b"\0" if len(page) == entries else self._next_group(position)
            entries -= len(page) + _A_LOOK
        if expired:
            store.write([(key, None) for key in expired])
        store.write([(SWEEPS + self._id, time_bytes(began) + position)])
        return expired

    def _progress(self, store: LocalStore) -> tuple[int, bytes]:
        """When the last walk began, and the stored key that it goes on from, which is empty when it is through."""
        stored = store.get(SWEEPS + self._id)
        return (0, b"") if stored is None else (read_time(stored[:STAMP]), stored[STAMP:])

    def _next_group(self, position: bytes) -> bytes:
        group = read_group(position) + 1
        return group_bytes(group) + self._id if group in self._key_groups else b""
