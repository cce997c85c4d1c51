"""The keyed state of one (operator, subtask): registered states and timers on top of a local store."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from holdfast.errors import ProgramError, StateDescriptorError
from holdfast.state.cells import Cells
from holdfast.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from holdfast.state.handles import StateMeta
from holdfast.state.key_table import KeyContext, KeyTable
from holdfast.state.keyed_state import KeyedState, Pending, StateAccess
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.keys import KeyCodec
from holdfast.state.layout import REGISTRY_KEY
from holdfast.state.list_state import KeyedListState
from holdfast.state.map_state import KeyedMapState
from holdfast.state.migration import rewrite_entries, rewrite_for
from holdfast.state.registry import TIMERS, StateRegistry
from holdfast.state.serializers import Serializer
from holdfast.state.store import LocalStore, Stamp
from holdfast.state.stored_keys import stored_keys
from holdfast.state.timers import TimeDomain, TimerQueue
from holdfast.state.value_state import KeyedAggregatingState, KeyedReducingState, KeyedValueState
from holdfast.types.resolve import resolve

#: Cache entries of one epoch, unless the cache between epochs may be larger.
_EPOCH_CACHE = 500_000


class KeyedScope(NamedTuple):
    """Whose state it is: the operator, its key codec and the key groups of the subtask."""

    operator_name: str
    key_codec: KeyCodec
    key_groups: KeyGroupRange
    max_parallelism: int


class KeyedStateBackend:
    """States by name, for one worker process and a line of epochs that it commits itself.

    It is made inside a transaction of the store (after ``LocalStore.begin``). The operator sets ``context.key`` and
    ``context.identity`` per row; states and timers work on them. ``commit`` ends the epoch. ``resume`` begins the
    next one and says whether this object, its states and their caches may go on; otherwise a new one is made.

    All caches together hold a bounded number of entries; beyond it they are written to the store early and emptied.
    ``cache_limit`` entries stay for the next epoch, None being no limit.
    """

    def __init__(self, store: LocalStore, scope: KeyedScope, backend_name: str, cache_limit: int | None) -> None:
        self.store = store
        self.scope = scope
        self.backend_name = backend_name
        self.context = KeyContext()
        self._cache_limit = sys.maxsize if cache_limit is None else cache_limit
        self._keys = KeyTable(scope.key_codec, scope.key_groups, scope.max_parallelism, scope.operator_name)
        self._access = StateAccess(self.context, self._keys, store, scope.operator_name, self._spill)
        self._access.room = max(self._cache_limit, _EPOCH_CACHE)
        self._states: dict[str, KeyedState] = {}
        self._timers: dict[str, TimerQueue] = {}
        self._committed: Stamp | None = None
        stored = store.get(REGISTRY_KEY)
        if stored is None:
            self._registry = StateRegistry(scope.key_codec.snapshot())
        else:
            self._registry = StateRegistry.decode(stored)
            scope.key_codec.require_compatible(self._registry.key_serializer, scope.operator_name)
        self._stored_registry = stored

    # Registration

    def state(self, descriptor: StateDescriptor, namespace_type: Any = None) -> Any:
        """The state of a descriptor: always the same object for one name.

        Restored state is checked against the descriptor here, and rewritten if its type needs that.
        """
        if descriptor.ttl_config is not None:
            raise ProgramError(
                f"The {descriptor.describe()} has a time to live, which is not available yet. Remove "
                f"enable_time_to_live, and delete old state with a timer."
            )
        namespaces = None if namespace_type is None else KeyCodec.for_type(resolve(namespace_type))
        serializers = descriptor.serializers()
        snapshots = {"value": serializers["value"].snapshot()}
        if isinstance(descriptor, MapStateDescriptor):
            snapshots["map_key"] = KeyCodec.for_type(descriptor.key_type_info).snapshot()
        meta = self._register(descriptor.get_name(), descriptor.kind, snapshots, namespaces, serializers["value"])
        if meta.name not in self._states:
            self._states[meta.name] = self._make(descriptor, meta, namespaces, Cells(serializers["value"]))
        return self._states[meta.name]

    def timers(self, name: str, domain: TimeDomain, namespace_type: Any = None) -> TimerQueue:
        """The timers of one service name and domain: always the same object."""
        namespaces = None if namespace_type is None else KeyCodec.for_type(resolve(namespace_type))
        meta = self._register(f"_timers/{domain.name.lower()}/{name}", TIMERS, {}, namespaces, None)
        if meta.name not in self._timers:
            self._timers[meta.name] = TimerQueue(self._access, meta, namespaces)
        return self._timers[meta.name]

    def states_meta(self) -> tuple[StateMeta, ...]:
        """All states of the store, those included that were restored and not asked for."""
        return self._registry.states()

    def adopt_keys(self, other: KeyedStateBackend) -> None:
        """Go on with the stored forms of keys that another backend has computed, if they are the same here."""
        mine, its = self.scope, other.scope
        same_range = (mine.key_groups, mine.max_parallelism) == (its.key_groups, its.max_parallelism)
        if same_range and mine.key_codec.snapshot() == its.key_codec.snapshot():
            self._keys = self._access.keys = other._keys

    def apply_to_all_keys(self, descriptor: StateDescriptor, function: Callable[[Any, Any], Any]) -> None:
        """Call ``function(key, state)`` for every key of the subtask that has the state, with that key as the current
        one. What the function does to the state is done to that key's.
        """
        state = self.state(descriptor)
        codec, context = self.scope.key_codec, self.context
        meta = self._registry.get(descriptor.get_name())
        assert meta is not None
        # Keys are found in the store: those that have the state only in a cache must be there too.
        self.flush()
        before = context.key, context.identity
        try:
            for key in stored_keys(self.store, self.scope.key_groups, meta.state_id, codec):
                context.key, context.identity = key, codec.identity(key)
                function(key, state)
        finally:
            context.key, context.identity = before

    # Epochs

    def flush(self) -> None:
        """Write what changed to the store's transaction."""
        pending = Pending()
        for state in self._states.values():
            state.collect(pending)
        for queue in self._timers.values():
            queue.collect(pending)
        registry = self._registry.encode()
        if registry != self._stored_registry:
            pending.writes.append((REGISTRY_KEY, registry))
            self._stored_registry = registry
        for start, end in pending.ranges:
            self.store.delete_range(start, end)
        if pending.writes:
            self.store.write(pending.writes)

    def commit(self, stamp: Stamp) -> None:
        """End the epoch: flush, commit the store, and keep what may be kept for the next one."""
        self.flush()
        self.store.commit(stamp)
        self._committed = stamp
        self.context.clear()
        cached = sum(state.cached_entries() for state in self._states.values())
        excess = cached - self._cache_limit
        for state in self._states.values():
            if excess > 0:
                excess = state.trim(excess)
        if len(self._keys) > self._cache_limit:
            self._keys.clear()
        self._access.room = max(self._cache_limit, _EPOCH_CACHE) - min(cached, self._cache_limit)

    def resume(self, base: Stamp) -> bool:
        """Begin the epoch after ``base``. True if this object may go on: ``base`` is what it committed last.

        False: the transaction is open, but this object is of no further use, and a new one is to be made.
        """
        mine, self._committed = self._committed == base, None
        self.store.begin(base)
        return mine

    # Inside

    def _register(
        self,
        name: str,
        kind: str,
        snapshots: dict[str, Any],
        namespaces: KeyCodec | None,
        values: Serializer | None,
    ) -> StateMeta:
        if namespaces is not None:
            snapshots["namespace"] = namespaces.snapshot()
        known = self._registry.get(name)
        if known is None:
            meta = StateMeta(name, self._registry.next_id(), kind, snapshots)
            self._registry.put(meta)
            return meta
        meta = StateMeta(name, known.state_id, kind, snapshots)
        if name in self._states or name in self._timers:
            if meta != known:
                raise self._disagreement(known, meta)
            return known
        rewrite = rewrite_for(self.scope.operator_name, known, meta, values)
        if rewrite is not None:
            rewrite_entries(self.store, self.scope.key_groups, known.state_id, rewrite)
        self._registry.put(meta)
        return meta

    def _disagreement(self, known: StateMeta, meta: StateMeta) -> StateDescriptorError:
        def text(one: StateMeta) -> str:
            types = ", ".join(f"{role} {snapshot['type']}" for role, snapshot in sorted(one.serializers.items()))
            return f"{one.kind} state of {types or 'no types'}"

        return StateDescriptorError(
            f"Operator '{self.scope.operator_name}' registers the name '{known.name}' twice: as {text(known)}, and as "
            f"{text(meta)}. Use one descriptor, or two names."
        )

    def _make(
        self, descriptor: StateDescriptor, meta: StateMeta, namespaces: KeyCodec | None, cells: Cells
    ) -> KeyedState:
        if isinstance(descriptor, ValueStateDescriptor):
            return KeyedValueState(self._access, meta, namespaces, cells)
        if isinstance(descriptor, ListStateDescriptor):
            return KeyedListState(self._access, meta, namespaces, cells)
        if isinstance(descriptor, MapStateDescriptor):
            map_keys = KeyCodec.for_type(descriptor.key_type_info)
            return KeyedMapState(self._access, meta, namespaces, map_keys, cells)
        if isinstance(descriptor, ReducingStateDescriptor):
            return KeyedReducingState(self._access, meta, namespaces, cells, descriptor.reduce)
        if isinstance(descriptor, AggregatingStateDescriptor):
            return KeyedAggregatingState(self._access, meta, namespaces, cells, descriptor.get_agg_function())
        raise ProgramError(f"{descriptor!r} is not a descriptor of keyed state.")

    def _spill(self) -> None:
        """Write early and empty the caches."""
        self.flush()
        for state in self._states.values():
            state.drop_caches()
        self._keys.clear()
        self._access.room = max(self._cache_limit, _EPOCH_CACHE)
