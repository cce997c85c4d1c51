"""The states of one backend that have a time to live: their clock, and what removes them once they have expired."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from holdfast.state.handles import StateMeta
from holdfast.state.key_table import KeyTable
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.layout import HEAD_LENGTH, read_id, read_sized
from holdfast.state.store import LocalStore
from holdfast.state.ttl_cells import STAMP, deadline
from holdfast.state.ttl_config import StateTtlConfig
from holdfast.state.ttl_states import ExpiringState
from holdfast.state.ttl_sweep import Sweep
from holdfast.state.ttl_time import TtlTime

#: Entries that the background checks in an epoch: some, so that an idle job is cleaned up too, and for every entry that
#: was written two, so that however fast a state grows the walk over it is faster.
_IN_EVERY_EPOCH = 1000
_FOR_EVERY_WRITE = 2


class _Expiring(NamedTuple):
    state: ExpiringState
    state_id: int
    sweep: Sweep


class TtlCleanup:
    """``begin_batch`` before rows or timers, ``run`` once at the end of an epoch, when all caches are written."""

    def __init__(self, key_groups: KeyGroupRange, clock: Callable[[], int]) -> None:
        self._key_groups = key_groups
        self.time = TtlTime(clock)
        self._rows = 0
        self._states: dict[str, _Expiring] = {}

    def add(self, meta: StateMeta, state: ExpiringState) -> None:
        sweep = Sweep(meta.state_id, self._key_groups, state.cells.config)
        self._states[meta.name] = _Expiring(state, meta.state_id, sweep)
        self.time.read()

    def config_of(self, name: str) -> StateTtlConfig | None:
        found = self._states.get(name)
        return None if found is None else found.state.cells.config

    def begin_batch(self, rows: int) -> None:
        if self._states:
            self.time.read()
            self._rows += rows

    def run(self, store: LocalStore, keys: KeyTable) -> None:
        """Check some entries of each state, as its strategies say, and remove the expired ones."""
        rows, self._rows = self._rows, 0
        for state, _, sweep in self._states.values():
            entries = entries_to_check(state.cells.config, state.accesses, state.written, rows)
            state.accesses = state.written = 0
            removed = sweep.run(store, self.time.read(), entries) if entries else []
            self._forget(state, removed, keys)

    @property
    def filters_full_images(self) -> bool:
        """Whether some state wants expired entries left out of full images."""
        return any(one.state.cells.config.cleanup_strategies.full_snapshot for one in self._states.values())

    def unexpired(self, entries: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
        """The entries of a full image: without expired ones of states that want it so."""
        if not self.filters_full_images:
            return entries
        now = self.time.read()
        deadlines = {
            state_id: deadline(state.cells.config, now)
            for state, state_id, _ in self._states.values()
            if state.cells.config.cleanup_strategies.full_snapshot
        }
        return (
            (key, value)
            for key, value in entries
            if read_id(key) not in deadlines or value[:STAMP] > deadlines[read_id(key)]
        )

    def _forget(self, state: ExpiringState, removed: list[bytes], keys: KeyTable) -> None:
        """Removed entries go from the caches too: nobody may ask for their keys again."""
        forgotten = []
        for stored in removed:
            key, namespace_at = read_sized(stored, HEAD_LENGTH)
            _, suffix_at = read_sized(stored, namespace_at)
            identity = keys.codec.identity(keys.codec.decode(key))
            forgotten.append((stored[namespace_at:suffix_at], identity))
            keys.forget(identity)
        state.forget(forgotten)


def entries_to_check(config: StateTtlConfig, accesses: int, written: int, rows: int) -> int:
    """How many entries of a state are checked at the end of an epoch that accessed it so often, wrote so many of its
    entries and processed so many rows.
    """
    strategies = config.cleanup_strategies
    entries = 0
    if strategies.incremental is not None:
        each = strategies.incremental
        entries += each.cleanup_size * (accesses + (rows if each.for_every_record else 0))
    if strategies.compact_filter is not None or (strategies.background and strategies.incremental is None):
        entries += _IN_EVERY_EPOCH + _FOR_EVERY_WRITE * written
    return entries
