"""Two keys that a migration makes one: found, reported, or merged.

While entries are loaded, old and new keys are counted as pairs of hashes, 16 bytes for each key. Only where more than
one old key may have become a new one is the snapshot read again, for these keys alone, as many at a time as fit into
memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from holdfast.errors import StateMigrationError
from holdfast.state.handles import StateMeta
from holdfast.state.key_merging import KeyMerging
from holdfast.state.key_migration import KeyPlan
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.regrouping import Entry, Moved, Regrouping
from holdfast.state.rewriting import Progress

#: Pairs of hashes that are collected before they are compacted.
_PAIRS = 1 << 20
#: New keys whose entries are merged at a time.
_KEYS_AT_ONCE = 100_000
#: Collisions that an error tells one by one.
_TOLD = 5


class Origins:
    """Which old keys became which new ones, by their hashes."""

    def __init__(self) -> None:
        self._pairs: npt.NDArray[np.int64] = np.empty((0, 2), np.int64)
        self._added: set[tuple[int, int]] = set()

    def add(self, moved: Moved) -> None:
        self._added.add((hash(moved.key), hash(moved.old_key)))
        if len(self._added) >= _PAIRS:
            self._compact()

    def suspects(self) -> list[int]:
        """Hashes of new keys that more than one old key may have become. A key without its hash here has one origin."""
        self._compact()
        new, counts = np.unique(self._pairs[:, 0], return_counts=True)
        found: list[int] = new[counts > 1].tolist()
        return found

    def _compact(self) -> None:
        if self._added:
            added = np.array(list(self._added), np.int64)
            self._pairs = np.unique(np.concatenate([self._pairs, added]), axis=0)
            self._added = set()


class KeyMigrationRun:
    """The migration of the keys of one subtask. ``read`` gives all entries that it reads, each time anew."""

    def __init__(
        self, regrouping: Regrouping, plan: KeyPlan, states: tuple[StateMeta, ...], read: Callable[[], Iterator[Entry]]
    ) -> None:
        self._regrouping = regrouping
        self._plan = plan
        self._states = {meta.state_id: meta for meta in states}
        self._read = read

    def entries(self, key_groups: KeyGroupRange, progress: Progress) -> Iterator[tuple[bytes, bytes | None]]:
        """The entries to load, in this order: those of keys that became one are written again, merged."""
        origins = Origins()
        for moved in self._regrouping.of_range(self._read(), key_groups):
            origins.add(moved)
            progress.add(1)
            yield moved.stored, moved.value
        suspects = origins.suspects()
        for first in range(0, len(suspects), _KEYS_AT_ONCE):
            some = frozenset(suspects[first : first + _KEYS_AT_ONCE])
            yield from self._merged(self._collisions(some, key_groups))

    def _collisions(self, suspects: frozenset[int], key_groups: KeyGroupRange) -> dict[bytes, dict[bytes, list[Entry]]]:
        """The entries of those keys that really became one, by new key and old key, in the order of the old ones."""
        found: dict[bytes, dict[bytes, list[Entry]]] = {}
        for moved in self._regrouping.of_range(self._read(), key_groups):
            if hash(moved.key) in suspects:
                entries = found.setdefault(moved.key, {}).setdefault(moved.old_key, [])
                entries.append((moved.stored, moved.value))
        real = [(key, dict(sorted(olds.items()))) for key, olds in found.items() if len(olds) > 1]
        return dict(sorted(real, key=lambda one: next(iter(one[1]))))

    def _merged(self, collisions: dict[bytes, dict[bytes, list[Entry]]]) -> Iterator[tuple[bytes, bytes | None]]:
        rewrite, merge = self._plan.rewrite, self._plan.merge
        if collisions and merge is None:
            told = [
                f"{' and '.join(map(rewrite.describe, olds))} become {rewrite.describe_new(key)}"
                for key, olds in list(collisions.items())[:_TOLD]
            ]
            more = f", and {len(collisions) - _TOLD} more" if len(collisions) > _TOLD else ""
            raise StateMigrationError(
                f"The migration of the keys of operator '{rewrite.operator}' makes one key of several: "
                f"{'; '.join(told)}{more}. Give them different keys, or say what becomes of their state: "
                "migrate_key_from(version, function, merge=...). Nothing is lost: the snapshot is as it was."
            )
        for key, olds in collisions.items():
            assert merge is not None
            merging = KeyMerging(rewrite.operator, rewrite.describe_new(key), self._states, merge)
            yield from merging.merged(list(olds.values()))
